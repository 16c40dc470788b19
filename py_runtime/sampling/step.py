"""Steps of sampling that a request names: functions of scores in Python, with parameters.

A step is registered by a class or function that makes it, in notebooks as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short
from py_runtime.sampling.candidates import without_faults

Value = float | str


@dataclass(frozen=True)
class Parameter:
    """A parameter of a step: a number within bounds, or a text, whose bounds are None."""

    default: Value
    least: float | None = None
    most: float | None = None
    about: str = ""  # in a few words
    is_whole: bool = False

    def check(self, name: str, value: Any) -> Value:
        """Return the value, or raise a RequestError that names the parameter."""
        if self.least is None or self.most is None:
            if not isinstance(value, str):
                raise RequestError(f"{name} must be a text, got {short(value)}", "sampler")
            return value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not self.least <= value <= self.most:
            raise RequestError(
                f"{name} must be a number from {self.least:g} to {self.most:g}, got {short(value)}",
                "sampler",
            )
        if self.is_whole and value != int(value):
            raise RequestError(f"{name} must be a whole number, got {short(value)}", "sampler")
        return int(value) if self.is_whole else float(value)


@dataclass(frozen=True)
class Drawing:
    """All that a step may want to know of the answer it is made for."""

    prompt: tuple[int, ...]
    vocabulary: int
    random: "np.random.Generator"  # seeded by the request; loaded late
    texts: Callable[[int], str]  # a token's text


class Step(Protocol):
    """A step: it changes the scores of the next token before the usual settings narrow them."""

    def __call__(self, scores: np.ndarray, tokens: list[int]) -> np.ndarray:
        """Return new scores float64 [V], -inf where a token must not come.

        `tokens` are all so far, the prompt's first.
        """


Maker = Callable[..., Step]  # (drawing, **parameters)


@dataclass(frozen=True)
class StepKind:
    """A kind of step, as settings list it."""

    name: str
    title: str
    about: str
    make: Maker
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    contrasts: bool = False  # with the scores after another prompt, which it takes as `other`

    def described(self) -> dict[str, Any]:
        """Return what settings show."""
        return {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "parameters": [
                {
                    "name": name,
                    "default": each.default,
                    "least": each.least,
                    "most": each.most,
                    "about": each.about,
                    "is_whole": each.is_whole,
                }
                for name, each in self.parameters.items()
            ],
        }


KINDS: dict[str, StepKind] = {}


def register_sampler(
    name: str,
    title: str = "",
    about: str = "",
    contrasts: bool = False,
    **parameters: "Parameter | tuple[float, float, float] | float | str",
) -> Callable[[Maker], Maker]:
    """Register a kind of step under a name; a later one takes the place of an earlier one.

    A parameter is given by its default, or by (default, least, most):

    @register_sampler("no_e", about="avoids the letter e", strength=(5.0, 0.0, 20.0))
    def no_e(drawing, strength):
        has_e = np.array(["e" in drawing.texts(token) for token in range(drawing.vocabulary)])
        return lambda scores, tokens: scores - strength * has_e
    """

    def add(make: Maker) -> Maker:
        taken = {key: _as_parameter(each) for key, each in parameters.items()}
        said = about or (make.__doc__ or "").strip().split("\n")[0]
        KINDS[name] = StepKind(name, title or name, said, make, taken, contrasts)
        return make

    return add


def _as_parameter(given: Parameter | tuple[float, float, float] | float | str) -> Parameter:
    if isinstance(given, Parameter):
        return given
    if isinstance(given, tuple):
        return Parameter(*given)
    return Parameter(given) if isinstance(given, str) else Parameter(given, -1e6, 1e6)


@dataclass(frozen=True)
class ChosenStep:
    """A step that a request names, with the values of all its parameters."""

    kind: StepKind
    values: Mapping[str, Value]

    def make(self, drawing: Drawing) -> Step:
        return self.kind.make(drawing, **self.values)


def choose_step(given: Any) -> ChosenStep:
    """Read `sampler: {"name": "dry", …}`; RequestError says what is wrong with it."""
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        raise RequestError(
            "sampler must be a function of (logits, tokens), or an object with the name of one",
            "sampler",
        )
    kind = KINDS.get(given["name"])
    if kind is None:
        known = ", ".join(KINDS)
        raise RequestError(
            f"there is no sampler {short(given['name'])}; there are {known}", "sampler"
        )
    unknown = [name for name in given if name != "name" and name not in kind.parameters]
    if unknown:
        raise RequestError(
            f"{kind.name} has no parameter {short(unknown[0])}; it has "
            f"{', '.join(kind.parameters) or 'none'}",
            "sampler",
        )
    values = {
        name: parameter.check(f"{name} of {kind.name}", given.get(name, parameter.default))
        for name, parameter in kind.parameters.items()
    }
    return ChosenStep(kind, values)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Return log probabilities float64 [V]; scores of -inf stay so."""
    sound = without_faults(scores).astype(np.float64)
    shifted = sound - sound.max()
    result: np.ndarray = shifted - np.log(np.exp(shifted).sum())
    return result
