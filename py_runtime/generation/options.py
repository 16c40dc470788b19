"""The options of a request, checked field by field: a wrong one is named, none is ignored."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from py_runtime.base.defaults import DEFAULTS
from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short
from py_runtime.generation.speculation import AUTO, OFF, ON
from py_runtime.sampling import SamplingSettings
from py_runtime.sampling.step import ChosenStep, choose_step

# What becomes of a chat that outgrows the context: it is refused, or its oldest messages go before
# an answer, or also while one is written (sliding.py).
ERROR, DROP_OLDEST, SLIDE = OVERFLOWS = "error", "drop_oldest", "slide"
MAX_STOPS = 16
MAX_NAME = 100  # characters of a field's name that an error repeats
MAX_TOP_LOGPROBS = 20

CustomSampler = Callable[[np.ndarray, list[int]], int]  # (logits [V], all tokens so far) → token


@dataclass(frozen=True)
class GenerationOptions:
    """The fields of a request, all of them checked."""

    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    sampler: CustomSampler | None = None  # instead of the above
    steps: tuple[ChosenStep, ...] = ()  # before the above
    max_tokens: int | None = None  # None: as many as there is room for, or as the context holds
    stop: tuple[str, ...] = ()
    top_logprobs: int | None = None  # None: no logprobs at all
    response_format: Any = None
    ignore_eos: bool = False  # goes on after an end token: for benchmarks and tests
    context_overflow: str = ERROR  # or DROP_OLDEST, or SLIDE
    allow_special: bool = False  # control tokens that messages spell are control tokens
    continue_final_message: bool = False  # the answer is the rest of the last message
    continue_token_ids: tuple[int, ...] = ()  # of that message, in place of its content
    shown_tokens: frozenset[str] = frozenset()  # control tokens that are a part of the text
    speculate: str = AUTO  # whether the next tokens are proposed and verified together

    @property
    def slides(self) -> bool:
        """Tell whether an answer goes on where the context is full."""
        return self.context_overflow == SLIDE

    def seeded(self) -> "GenerationOptions":
        """Return options with a seed: a random one where the request names none."""
        if self.sampling.seed is not None:
            return self
        return replace(self, sampling=replace(self.sampling, seed=random.getrandbits(32)))


SAMPLING_FIELDS = tuple(entry.name for entry in fields(SamplingSettings))
NOT_A_CHOICE = ("seed", "logit_bias")  # of a way to draw: the defaults stand beside them


def parse_options(given: Mapping[str, Any], vocabulary: int) -> GenerationOptions:
    """Check a request's fields in OpenAI's names; an absent one and None mean the default.

    The sampling defaults belong together: once a request names one of these settings, the others
    become neutral, so that `temperature: 0` gives the model's own likeliest token.
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    settings = {name: wanted.pop(name) for name in SAMPLING_FIELDS if name in wanted}
    if not settings.keys() - set(NOT_A_CHOICE):
        settings = DEFAULTS | settings
    if "logit_bias" in settings:
        settings["logit_bias"] = _logit_bias(settings["logit_bias"])
    sampling = SamplingSettings(**settings)
    sampling.check(vocabulary)
    top_logprobs = _top_logprobs(wanted.pop("logprobs", False), wanted.pop("top_logprobs", None))
    sampler = wanted.pop("sampler", None)
    steps = () if sampler is None or callable(sampler) else _steps(sampler)
    options = GenerationOptions(
        sampling=sampling,
        sampler=sampler if callable(sampler) else None,
        steps=steps,
        max_tokens=_max_tokens(wanted),
        stop=_stop(wanted.pop("stop", ())),
        top_logprobs=top_logprobs,
        response_format=wanted.pop("response_format", None),
        ignore_eos=take_bool(wanted, "ignore_eos"),
        context_overflow=_overflow(wanted.pop("context_overflow", ERROR)),
        allow_special=take_bool(wanted, "allow_special"),
        continue_final_message=take_bool(wanted, "continue_final_message"),
        continue_token_ids=_token_ids(wanted.pop("continue_token_ids", ()), vocabulary),
        speculate=_speculate(wanted.pop("speculate", AUTO)),
    )
    if options.continue_token_ids and not options.continue_final_message:
        raise RequestError(
            "continue_token_ids needs continue_final_message: true", "continue_token_ids"
        )
    count = wanted.pop("n", 1)
    if count != 1 or isinstance(count, bool):
        raise RequestError("n must be 1: one answer at a time", "n")
    if wanted:
        raise unknown_field(next(iter(wanted)))
    return options


def _steps(given: Any) -> tuple[ChosenStep, ...]:
    """Read samplers that a request names: one, or several in their order."""
    import py_runtime.sampling.steps  # noqa: F401  (registers those of the engine)

    chosen = tuple(map(choose_step, given if isinstance(given, list) else [given]))
    if sum(each.kind.contrasts for each in chosen) > 1:
        raise RequestError("only one sampler can contrast two prompts", "sampler")
    return chosen


def negative_of(options: GenerationOptions) -> str | None:
    """Return the prompt to contrast with, or None where no sampler contrasts any."""
    for step in options.steps:
        if step.kind.contrasts:
            return str(step.values["negative"])
    return None


def unknown_field(name: str) -> RequestError:
    """Return the error for an unknown field: no field is ignored."""
    return RequestError(f"{short(name)} is not a field this engine knows", name[:MAX_NAME])


def take_bool(wanted: dict[str, Any], name: str) -> bool:
    """Take a bool out of the request; False if it is absent."""
    value = wanted.pop(name, False)
    if not isinstance(value, bool):
        raise RequestError(f"{name} must be true or false, got {short(value)}", name)
    return value


def _token_ids(given: Any, vocabulary: int) -> tuple[int, ...]:
    if not isinstance(given, list | tuple):
        raise RequestError(
            f"continue_token_ids must be a list of tokens, got {short(given)}", "continue_token_ids"
        )
    for token in given:
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < vocabulary:
            raise RequestError(
                f"continue_token_ids holds {short(token)}, not a token from 0 to {vocabulary - 1}",
                "continue_token_ids",
            )
    return tuple(given)


def _max_tokens(wanted: dict[str, Any]) -> int | None:
    """Return the limit of tokens; `max_completion_tokens` is the newer name of `max_tokens`."""
    given = [(name, wanted.pop(name, None)) for name in ("max_tokens", "max_completion_tokens")]
    for name, value in given:
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise RequestError(f"{name} must be an integer from 1 on, got {short(value)}", name)
        return value
    return None


def _stop(value: Any) -> tuple[str, ...]:
    stops = (value,) if isinstance(value, str) else value
    if not isinstance(stops, Sequence) or not all(isinstance(stop, str) and stop for stop in stops):
        raise RequestError("stop must be a text or a list of texts, none of them empty", "stop")
    if len(stops) > MAX_STOPS:
        raise RequestError(f"stop has {len(stops)} texts; at most {MAX_STOPS}", "stop")
    return tuple(stops)


def _top_logprobs(logprobs: Any, top: Any) -> int | None:
    if not isinstance(logprobs, bool):
        raise RequestError(f"logprobs must be true or false, got {short(logprobs)}", "logprobs")
    if top is None:
        return 0 if logprobs else None
    if isinstance(top, bool) or not isinstance(top, int) or not 0 <= top <= MAX_TOP_LOGPROBS:
        raise RequestError(
            f"top_logprobs must be an integer from 0 to {MAX_TOP_LOGPROBS}, got {short(top)}",
            "top_logprobs",
        )
    if not logprobs:
        raise RequestError("top_logprobs needs logprobs: true", "top_logprobs")
    return top


def _logit_bias(value: Any) -> dict[int, Any]:
    """Parse a logit bias; JSON has no integer keys, so "17" is the token 17."""
    try:
        return {int(token): bias for token, bias in value.items()}
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise RequestError(
            "logit_bias must be an object of token ids and numbers", "logit_bias"
        ) from None


def _speculate(value: Any) -> str:
    known = {AUTO: AUTO, ON: ON, OFF: OFF, True: ON, False: OFF}
    if not isinstance(value, bool | str) or value not in known:
        raise RequestError(
            f'speculate must be "{AUTO}", true or false, got {short(value)}', "speculate"
        )
    return known[value]


def _overflow(value: Any) -> str:
    if value not in OVERFLOWS:
        raise RequestError(
            f"context_overflow must be one of {', '.join(OVERFLOWS)}, got {short(value)}",
            "context_overflow",
        )
    return str(value)
