"""Tokens drawn on the GPU in batches: the next one runs while one is read.

Where the text repeats itself, or a draft is at hand, the next tokens are proposed, and a batch is
one call that verifies them.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.base.errors import GpuOutOfMemoryError
from py_runtime.generation.decode_loop import Batch, DecodeLoop, Drawing
from py_runtime.generation.device_sampler import MAX_DRAWS
from py_runtime.generation.draft import Draft
from py_runtime.generation.pieces import Drawn
from py_runtime.generation.session import PrefillProgress, Session
from py_runtime.generation.sliding import Slide, SlidingText
from py_runtime.generation.speculation import AUTO, Choice, Guesses
from py_runtime.sampling import NoFiniteLogitsError, SamplingSettings

IN_FLIGHT = 2


class DeviceTokens:
    """The tokens of one answer, drawn on the GPU."""

    def __init__(
        self,
        session: Session,
        prompt: list[int],
        settings: SamplingSettings,
        room: int,
        cancel: CancelToken,
        speculate: str = AUTO,
        slide: Slide | None = None,
    ) -> None:
        self._session = session
        self._speculate = speculate
        self._prompt = prompt
        self._settings = settings
        self._room = room
        self._cancel = cancel
        self._seed = random.getrandbits(32) if settings.seed is None else settings.seed
        self._drawn: list[int] = []
        self._draws = 0  # random numbers used
        self._is_last_held = False  # the cache has the last token drawn
        self._text = SlidingText(session, slide, prompt)

    def batches(self, on_prefill: PrefillProgress) -> AsyncGenerator[list[Drawn], None]:
        """Yield tokens as they come; after a lost device, resume with the same random numbers."""
        return self._session.device.survive_each(lambda: self._rest(on_prefill), self._cancel)

    async def _rest(self, on_prefill: PrefillProgress) -> AsyncGenerator[list[Drawn], None]:
        """Yield the tokens that have not come yet."""
        while len(self._drawn) < self._room:
            so_far = await self._text.seen([*self._prompt, *self._drawn])
            await self._session.compute_after(so_far, self._cancel, on_prefill)
            self._is_last_held = True
            loop = await until_cancelled(self._session.decode_loop(), self._cancel)
            async with aclosing(self._from(loop, len(so_far))) as batches:
                async for tokens in batches:
                    yield [Drawn(token) for token in tokens]

    async def _from(self, loop: DecodeLoop, position: int) -> AsyncGenerator[list[int], None]:
        """Yield tokens from the logits just computed; the first token is for `position`.

        They are as many as there is room for before something has to slide out.
        """
        wanted = self._room - len(self._drawn)
        wanted = min(wanted, self._text.room(position) or wanted)
        pace = self._session.batches
        pace.begin()
        in_flight: deque[Drawing] = deque()
        # A token's row can be read once the token is known.
        max_in_flight = IN_FLIGHT if self._session.token_rows is None else 1
        async with self._session.graph.lock:  # nobody else may resize the graph meanwhile
            first = loop.first(
                self._settings,
                self._prompt,
                self._drawn,
                self._seed,
                self._draws,
                self._session.shift,
            )
            in_flight.append(first)
            asked = 1
            mode = self._session.speculation_mode(self._speculate)
            speculation, text = self._session.speculation, [*self._prompt, *self._drawn]
            guesses = Guesses(speculation, mode, text, self._session.proposer is not None)
            draft = self._own_draft(loop)
            at_most = MAX_DRAWS  # steps of a batch; few where proposals have just come true
            try:
                while in_flight or asked < wanted:
                    most = min(wanted - asked, self._session.most_verified(position))
                    choice = guesses.choose(most)  # proposals wait for what is in flight
                    verifying = None
                    if choice and not in_flight:
                        proposed = await self._propose(guesses, choice, draft)
                        started = time.perf_counter()
                        verifying = await self._verify(loop, position, proposed)
                        choice = choice if verifying else None
                    if verifying:
                        in_flight.append(verifying)
                    while not choice and asked < wanted and len(in_flight) < max_in_flight:
                        ahead = wanted - asked
                        steps = min(pace.steps, at_most, ahead)
                        drawing = await self._run(loop, position, steps, ahead)
                        in_flight.append(drawing)
                        position += drawing.steps
                        asked += drawing.steps
                        at_most = min(2 * at_most, MAX_DRAWS)
                    waiting_since = time.perf_counter()
                    batch = await self._arrival(in_flight[0])
                    del in_flight[0]
                    now = time.perf_counter()
                    self._session.waited_s += now - waiting_since
                    self._cancel.check()
                    if choice and verifying:
                        await self._settle(loop, position, len(proposed) + 1, batch)
                        position += len(batch.tokens)
                        asked += len(batch.tokens)
                        taken = time.perf_counter() - started
                        guesses.verified(choice, len(proposed), len(batch.tokens), taken)
                        pace.begin()
                        at_most = 1
                    else:
                        seconds = pace.arrived(len(batch.tokens), now)
                        guesses.decoded(len(batch.tokens), seconds)
                    guesses.add(batch.tokens)
                    self._take(batch)
                    yield batch.tokens
            finally:
                for drawing in in_flight:
                    drawing.leave()

    async def _arrival(self, drawing: Drawing) -> Batch:
        """Wait for a batch, or until the caller cancels: what is in flight ends by itself."""

        def stop() -> None:
            drawing.state.cancel()

        self._cancel.on_cancel(stop)
        try:
            return await drawing.batch()
        except asyncio.CancelledError:
            self._cancel.check()
            raise
        finally:
            self._cancel.forget(stop)

    async def _run(self, loop: DecodeLoop, position: int, steps: int, ahead: int) -> Drawing:
        """Start the next batch; the states before it are kept, wherever the answer ends."""
        token_rows = None
        if self._session.token_rows is not None:
            steps, token_rows = 1, await self._session.token_rows.read(self._drawn[-1:])
        states, copies = self._session.states, self._session.graph.state_copies
        if copies is not None:
            states.keep_batch(copies)
        states.leave()
        drawing = loop.run(position, steps, ahead, token_rows)
        self._session.windows.write(position + drawing.steps)
        states.reach(position + drawing.steps)
        return drawing

    def _own_draft(self, loop: DecodeLoop) -> Draft | None:
        model = self._session.proposer
        if model is None:
            return None
        record, vocabulary = self._session.speculation.draft, loop.sampler.vocabulary
        return Draft(model, record, self._prompt, self._settings, self._seed, vocabulary)

    async def _propose(self, guesses: Guesses, choice: Choice, draft: Draft | None) -> list[int]:
        """Return the tokens of a choice."""
        if draft is None or choice.place is not None:
            return guesses.look_up(choice)
        try:
            answer, draws = self._drawn, self._draws
            proposed = await draft.propose(answer, draws, choice.count, self._cancel)
        except (GpuOutOfMemoryError, NoFiniteLogitsError):  # the answer goes on without it
            proposed = []
        guesses.has_draft = bool(proposed)
        return proposed

    async def _verify(self, loop: DecodeLoop, position: int, proposed: list[int]) -> Drawing | None:
        """Start a call that verifies these tokens, if there are some and a verifier can be had."""
        if not proposed:
            return None
        verifier = await until_cancelled(self._session.verifier(loop), self._cancel)
        if verifier is None:
            return None
        tokens = [self._drawn[-1], *proposed]
        inputs = await self._session.inputs(tokens, position)
        states, copies = self._session.states, self._session.graph.state_copies
        if copies is not None:
            states.keep_batch(copies)
        states.leave()
        self._session.windows.write(position + len(tokens))
        return verifier.run(tokens, inputs)

    async def _settle(self, loop: DecodeLoop, position: int, computed: int, batch: Batch) -> None:
        """Take back what so many tokens from a position left in states, if not all came true.

        Then those that did are computed again, from where the states were before the call.
        """
        states, copies = self._session.states, self._session.graph.state_copies
        if copies is not None and len(batch.tokens) < computed:
            verifier = await self._session.verifier(loop)
            assert verifier is not None, "it has just computed them"
            states.go_back(copies, position)
            states.leave()
            fed = self._fed(batch)
            await verifier.compute(await self._session.inputs(fed, position))
        states.reach(position + len(batch.tokens))

    def _fed(self, batch: Batch) -> list[int]:
        """Return the tokens that were computed for these to be drawn."""
        before = [] if self._is_last_held else self._drawn[-1:]
        return [*before, *batch.tokens[:-1]]

    def _take(self, batch: Batch) -> None:
        """Record what the cache holds now: all tokens that were drawn except the last."""
        self._draws = batch.draws
        fed = self._fed(batch)
        self._is_last_held = False
        self._session.tokens += fed
        self._session.computed_tokens += len(fed)
        self._drawn += batch.tokens
