"""Tokens chosen on the host, one call of the graph each: by any function, in any grammar."""

from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Protocol

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.generation.options import GenerationOptions
from py_runtime.generation.pieces import Drawn
from py_runtime.generation.session import PrefillProgress, Session
from py_runtime.generation.sliding import Slide, SlidingText
from py_runtime.grammar import Grammar
from py_runtime.sampling import Sampler, TokenHistory, TokenLogprob, logprobs
from py_runtime.sampling.step import Drawing


class OtherPrompt(Protocol):
    """Another prompt with the same answer."""

    async def logits_after(self, answer: list[int], cancel: CancelToken) -> np.ndarray:
        """Return the logits [V] after the prompt and these tokens of the answer."""


class HostTokens:
    """The tokens of one answer, chosen on the host."""

    def __init__(
        self,
        session: Session,
        prompt: list[int],
        options: GenerationOptions,
        grammar: Grammar | None,
        room: int,
        cancel: CancelToken,
        texts: Callable[[int], str],
        other: OtherPrompt | None = None,
        slide: Slide | None = None,
    ) -> None:
        self._session = session
        self._texts = texts
        self._other = other
        self._prompt = prompt
        self._options = options
        self._grammar = grammar
        self._room = room
        self._cancel = cancel
        self._text = SlidingText(session, slide, prompt)

    async def batches(self, on_prefill: PrefillProgress) -> AsyncGenerator[list[Drawn], None]:
        tokens = list(self._prompt)
        choose: Chooser | None = None
        for remaining in range(self._room, 0, -1):
            seen = await self._session.device.survive(
                partial(self._text.seen, tokens), self._cancel
            )
            logits = await self._session.logits_after(seen, self._cancel, on_prefill)
            if choose is None:
                size = len(logits)
                choose = Chooser(self._prompt, self._options, self._grammar, size, self._texts)
            if self._other is not None:
                answer = tokens[len(self._prompt) :]
                choose.contrast(await self._other.logits_after(answer, self._cancel))
            token = choose(logits, tokens, remaining)
            tokens.append(token)
            yield [Drawn(token, choose.logprobs(logits, token), choose.is_complete)]


class Chooser:
    """A chooser of the next token: by the settings, by the caller's function, within a grammar."""

    def __init__(
        self,
        prompt: list[int],
        options: GenerationOptions,
        grammar: Grammar | None,
        vocabulary: int,
        texts: Callable[[int], str],
    ) -> None:
        self._options = options
        self._grammar = grammar
        self._vocabulary = vocabulary
        self._sampler = Sampler(options.sampling, vocabulary)
        self._history = TokenHistory(prompt, vocabulary)
        drawing = Drawing(tuple(prompt), vocabulary, self._sampler.random, texts)
        self._steps = [chosen.make(drawing) for chosen in options.steps]

    def __call__(self, logits: np.ndarray, tokens: list[int], remaining: int) -> int:
        allowed = self._grammar.allowed(remaining) if self._grammar else None
        if self._options.sampler is not None:
            token = self._custom(logits, tokens, allowed)
        else:
            steps = [partial(step, tokens=tokens) for step in self._steps]
            token = self._sampler.sample(logits, self._history, allowed, steps)
        self._history.add(token)
        if self._grammar:
            self._grammar.advance(token)
        return token

    def contrast(self, other: np.ndarray) -> None:
        """Give the step that contrasts two prompts the logits after the other one."""
        for step, chosen in zip(self._steps, self._options.steps, strict=True):
            if chosen.kind.contrasts:
                step.other = other  # type: ignore[attr-defined]

    def logprobs(self, logits: np.ndarray, token: int) -> tuple[TokenLogprob, ...]:
        top = self._options.top_logprobs
        return () if top is None else (logprobs(logits, token, top),)

    @property
    def is_complete(self) -> bool:
        return self._grammar is not None and self._grammar.complete

    def _custom(self, logits: np.ndarray, tokens: list[int], allowed: np.ndarray | None) -> int:
        assert self._options.sampler is not None, "the caller asks only then"
        masked = logits.copy() if allowed is None else np.where(allowed, logits, -np.inf)
        token = self._options.sampler(masked, list(tokens))
        if not isinstance(token, int | np.integer) or not 0 <= token < self._vocabulary:
            raise RequestError(
                f"the sampler gave {token!r}, not a token from 0 to {self._vocabulary - 1}",
                "sampler",
            )
        if allowed is not None and not allowed[token]:
            raise RequestError(
                f"the sampler gave token {token}, which response_format forbids here", "sampler"
            )
        return int(token)
