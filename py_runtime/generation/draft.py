"""A smaller model that proposes the next tokens: those that it would write itself.

Or a head of the model's own, which is a small decoder as well, one token ahead of the model.

It draws them with the settings and the random numbers that the answer's own model will draw with,
so that both choose alike wherever they expect alike. Its caches follow the answer: what did not
come true is cut back before the next proposals.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.generation.decode_loop import Drawing
from py_runtime.generation.session import DraftModel, ignore_progress
from py_runtime.generation.speculation import DraftRecord
from py_runtime.generation.verifier import MOST_TOKENS
from py_runtime.sampling import SamplingSettings

UNKNOWN = 0  # stands for tokens that the draft's vocabulary lacks


class Draft:
    """The proposals of a smaller model for one answer."""

    def __init__(
        self,
        model: DraftModel,
        record: DraftRecord,
        prompt: Sequence[int],
        settings: SamplingSettings,
        seed: int,
        vocabulary: int,
    ) -> None:
        """`vocabulary`: the size of that of the answer's own model."""
        self._model = model
        self._record = record
        self._seed = seed
        self._vocabulary = vocabulary
        self._prompt = self._known(prompt)
        bias = {
            token: value for token, value in settings.logit_bias.items() if token < model.vocabulary
        }
        self._settings = replace(settings, logit_bias=bias)

    def _known(self, tokens: Sequence[int]) -> list[int]:
        most = self._model.vocabulary
        return [token if token < most else UNKNOWN for token in tokens]

    async def propose(
        self, answer: Sequence[int], draws: int, count: int, cancel: CancelToken
    ) -> list[int]:
        """Return at most `count` tokens to follow the answer so far.

        `draws` are the random numbers that it has used. Its context, a cache that is a ring, and a
        token that the answer's own model does not know make it fewer.
        """
        session, model = self._model.session, self._model
        known = self._known(answer)
        text = [*self._prompt, *known][int(model.is_head) :]
        room = model.context - len(text)
        count = min(count, room, session.most_verified(len(text) - 1))
        if room < 1:
            return []
        missing = len(text) - session.reusable(text)
        started = time.perf_counter()
        await session.compute_after(text, cancel, ignore_progress)
        drawn = await self._draw(known, len(text), draws, count, cancel)
        if not model.is_head:  # which computes them again, from what the model leaves there
            session.tokens += drawn[:-1]
        if missing <= MOST_TOKENS:  # else it has read a prompt, or what was written without it
            self._record.took(count, time.perf_counter() - started)
        wrong = (at for at, token in enumerate(drawn) if token >= self._vocabulary)
        return drawn[: next(wrong, count)]

    def _leave_place(self, position: int, tokens: int) -> None:
        """Prepare for going back to a position, behind which so many tokens are computed."""
        session = self._model.session
        session.windows.write(position + tokens)
        if session.graph.state_copies is not None:
            session.states.keep_batch(session.graph.state_copies)
        session.states.reach(position + tokens)

    async def _draw(
        self, answer: list[int], position: int, draws: int, count: int, cancel: CancelToken
    ) -> list[int]:
        """Draw from the logits just computed, and decode on from a position."""
        session = self._model.session
        loop = await until_cancelled(session.decode_loop(), cancel)
        in_flight: list[Drawing] = []
        drawn: list[int] = []
        try:
            async with session.graph.lock:
                in_flight.append(
                    loop.first(self._settings, self._prompt, answer, self._seed, draws)
                )
                self._leave_place(position, count - 1)
                left = count - 1
                while left:
                    drawing = loop.run(position, left)
                    in_flight.append(drawing)
                    position, left = position + drawing.steps, left - drawing.steps
            while in_flight:
                drawn += (await until_cancelled(in_flight[0].batch(), cancel)).tokens
                del in_flight[0]
        finally:
            for drawing in in_flight:
                drawing.leave()
        return drawn
