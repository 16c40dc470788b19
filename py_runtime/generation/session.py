"""A model's caches and states and the tokens in them.

What is there is reused, and a lost device is replaced.
"""

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.base.errors import GpuDeviceLostError, GpuOutOfMemoryError, GraphError
from py_runtime.devices.recovery import Recovery
from py_runtime.generation.decode_loop import LOGITS, DecodeLoop, can_loop
from py_runtime.generation.held_windows import HeldWindows
from py_runtime.generation.kept_states import TAIL, KeptStates
from py_runtime.generation.pace import BatchPace, PrefillPace
from py_runtime.generation.speculation import AUTO, OFF, ON, Speculation
from py_runtime.generation.verifier import MOST_TOKENS, Verifier, can_verify
from py_runtime.gpu.kernel_target import HALVES
from py_runtime.graph import Graph
from py_runtime.graph.cache_slide import slidable_caches, slide
from py_runtime.graph.state_backup import StateBackup

LEAST_ALIKE = 16  # tokens by which a text is known again behind what was left out of it

PrefillProgress = Callable[[int, int], None]  # (tokens in the cache, tokens of the prompt)
RunGraph = Callable[[list[np.ndarray]], Coroutine[Any, Any, list[np.ndarray]]]


class TokenRows(Protocol):
    """Rows that belong to tokens and do not lie on the GPU."""

    @property
    def columns(self) -> int: ...

    async def read(self, tokens: Sequence[int]) -> np.ndarray:
        """Return the rows of these tokens: f32 [1, S, columns]."""


class ImageRows(Protocol):
    """Rows of images that stand in for the embeddings of tokens."""

    seconds: float  # spent on images so far

    async def read(self, tokens: Sequence[int], before: Sequence[int]) -> list[np.ndarray]:
        """Return what a decoder that sees takes besides these tokens, which follow others."""

    def begin_of_image(self, tokens: Sequence[int], at: int) -> int:
        """Return where an image begins that must be computed whole and has a row at `at`."""

    def end_of_chunk(self, tokens: Sequence[int], start: int, end: int) -> int:
        """Return where a call ends that should end at `end`, so that images stay whole."""

    def shift(self, tokens: Sequence[int]) -> int:
        """Return how far the place of what follows these tokens lies from its position."""


class SessionModel(Protocol):
    """The parts of a model that a session needs."""

    max_chunk: int
    token_rows: TokenRows | None  # the graph's last input, where there are some

    @property
    def context(self) -> int: ...

    @property
    def image_rows(self) -> ImageRows | None: ...  # the inputs behind the position, likewise

    @property
    def graph(self) -> Graph: ...

    @property
    def proposer(self) -> "DraftModel | None": ...  # of tokens

    def recover(self) -> Coroutine[Any, Any, None]:
        """Rebuild the graph on a new device."""

    def give_up_device(self) -> Coroutine[Any, Any, None]:
        """Rebuild the graph on the CPU, in place of a GPU that was lost too often."""


class DraftModel(Protocol):
    """The parts of a smaller model that proposals need; it belongs to the model it proposes for.

    A head is a part of that one: at each position it reads the token behind it, with what the model
    has computed there.
    """

    vocabulary: int
    is_head: bool

    @property
    def session(self) -> "Session": ...

    @property
    def context(self) -> int: ...


def ignore_progress(done: int, total: int) -> None:
    """Ignore the progress of a prefill that nobody watches."""


class Session:
    """A session computes only what the cache lacks, and everything again on a new device."""

    def __init__(self, model: SessionModel, in_one: bool = False) -> None:
        """`in_one`: chunks are as large as can be, for they take no time."""
        self.tokens: list[int] = []  # whose keys and values the cache holds, from position 0
        self.computed_tokens = 0  # that went through the graph, ever
        self.waited_s = 0.0  # for tokens drawn on the GPU, ever
        self._model = model
        self._pace = PrefillPace(model.max_chunk)
        self.batches = BatchPace()
        self.states = KeptStates()  # counts where the graph has states that cannot be cut back
        self.windows = HeldWindows()  # counts where caches are rings
        self.device = Recovery(model.recover, model.give_up_device, self.forget)
        self._in_one = in_one
        self._loop: DecodeLoop | None = None
        self._looped: Graph | None = None  # the graph it belongs to
        self.speculation = Speculation()
        self._verifier: Verifier | None = None  # of the same graph

    def __repr__(self) -> str:
        return f"Session({len(self.tokens)} tokens in the cache)"

    def reusable(self, prompt: Sequence[int]) -> int:
        """Return how many of the prompt's tokens are cached, not counting its last.

        The last is computed again, for its logits.
        """
        return self._reachable(self._shared(prompt))

    def _shared(self, prompt: Sequence[int]) -> int:
        most = min(len(self.tokens), len(prompt) - 1)
        if self.tokens[:most] != list(prompt[:most]):
            most = next(at for at in range(most) if self.tokens[at] != prompt[at])
        images = self._model.image_rows
        return most if images is None else images.begin_of_image(prompt, most)

    @property
    def shift(self) -> int:
        """Return how far the place of the next token lies from its position."""
        images = self._model.image_rows
        return 0 if images is None else images.shift(self.tokens)

    def forget(self) -> None:
        self.tokens.clear()
        self.states.forget()
        self.windows.forget()

    def cut_back(self, position: int) -> None:
        """Forget what is held from this position on: something else would be computed there."""
        if position < len(self.tokens):
            self._go_back(position)

    async def slide(self, keep: int, drop: int) -> None:
        """Let tokens behind the first `keep` go; those that follow them move up, with their keys.

        Where these cannot be turned to other positions the first are held alone, and the others
        are computed again by whoever needs them.
        """
        tokens, end = [*self.tokens[:keep], *self.tokens[keep + drop :]], len(self.tokens)
        caches = None
        if keep + drop < end and self._model.image_rows is None:
            caches = slidable_caches(self.graph.program, self._model.context)
        if caches is None:
            self.cut_back(keep)
            return
        self.forget()  # until all of it has moved
        async with self.graph.lock:
            is_moved = await slide(self.graph, caches, keep, drop, end)
        self.tokens = tokens if is_moved else tokens[:keep]
        self.windows.write(len(self.tokens))

    async def slide_towards(self, prompt: Sequence[int]) -> None:
        """Let tokens go that a prompt has left out, if most of what follows them is in it."""
        keep = self._shared(prompt)
        drop = _left_out(self.tokens[keep:], prompt[keep:])
        if drop:
            await self.slide(keep, drop)

    def begin_anew(self) -> "Session":
        """Return a fresh session; what was measured and compiled stays."""
        self.forget()
        self.computed_tokens, self.waited_s = 0, 0.0
        return self

    async def compile(self) -> None:
        """Compile what an answer needs."""
        await self.device.attempt(self.decode_loop() if self.can_loop else self.graph.compiled())

    async def logits_after(
        self,
        tokens: Sequence[int],
        cancel: CancelToken,
        progress: PrefillProgress = ignore_progress,
    ) -> np.ndarray:
        """Return the logits [V] after these tokens, computing what the cache lacks, in chunks.

        A device lost meanwhile is replaced and the tokens are computed again: the caller notices
        nothing but the time.
        """
        (logits,) = await self._compute(tokens, cancel, progress, self._read_logits)
        last: np.ndarray = logits[0]
        return last

    async def compute_after(
        self, tokens: Sequence[int], cancel: CancelToken, progress: PrefillProgress
    ) -> None:
        """Compute what the cache lacks and leave the logits on the GPU.

        A caller that continues with them there handles the loss of the device for the whole.
        """
        await self._fill(tokens, cancel, progress, self._leave_logits, self._run_chunk)

    async def compute_each(
        self,
        tokens: Sequence[int],
        cancel: CancelToken,
        run: RunGraph,
        in_one: bool = False,
        since: int = 0,
    ) -> None:
        """Compute these tokens anew, each chunk by `run`; those before `since` if they are missing.

        After a lost device it starts at position 0 again. `in_one`: in as few chunks as can be.
        """
        self.cut_back(since) if since else self.forget()
        self._in_one, usual = in_one, self._in_one
        try:
            await self._compute(tokens, cancel, ignore_progress, run, run)
        finally:
            self._in_one = usual

    async def _compute(
        self,
        tokens: Sequence[int],
        cancel: CancelToken,
        progress: PrefillProgress,
        end: RunGraph,
        before: RunGraph | None = None,
    ) -> list[np.ndarray]:
        """Compute missing tokens, the last chunk through `end`, others through `before`."""
        return await self.device.survive(
            lambda: self._fill(tokens, cancel, progress, end, before or self._run_chunk), cancel
        )

    async def _fill(
        self,
        tokens: Sequence[int],
        cancel: CancelToken,
        progress: PrefillProgress,
        end: RunGraph,
        before: RunGraph,
    ) -> list[np.ndarray]:
        self._go_back(self._shared(tokens))
        while True:
            cancel.check()
            start = len(self.tokens)
            missing = len(tokens) - start
            chunk = list(tokens[start : self._end_of_chunk(tokens, start)])
            inputs = await until_cancelled(self.inputs(chunk, start), cancel)
            started = time.perf_counter()
            is_last = len(chunk) == missing
            self.states.leave()
            self.windows.write(start + len(chunk))
            # Stop does not wait for a chunk: it ends by itself, before anything that follows it.
            run = end if is_last else before
            results = await until_cancelled(run(inputs), cancel)
            self.states.reach(start + len(chunk))
            if results or not is_last:  # else it is not known how long it takes
                self._pace.took(len(chunk), time.perf_counter() - started)
            self.tokens += chunk
            self.computed_tokens += len(chunk)
            if missing > 1:  # nobody waits for one
                progress(len(self.tokens), len(tokens))
            if is_last:
                return results

    @asynccontextmanager
    async def set_aside(self) -> AsyncIterator[None]:
        """Set the tokens held aside: what is computed meanwhile leaves no trace.

        They may be built upon. The caller holds the model's lock. Where there is no room for a
        copy, or the device is lost, what was held is forgotten instead.
        """
        tokens, states, windows = list(self.tokens), deepcopy(self.states), deepcopy(self.windows)
        backup: StateBackup | None = None
        if tokens:
            with suppress(GpuOutOfMemoryError, GpuDeviceLostError):
                positions = max(len(tokens), self.windows.written)
                backup = await StateBackup.create(self.graph, positions)
        if backup is None:
            self.forget()
        try:
            yield
        finally:
            self.forget()
            if backup is not None:
                is_same = backup.graph is self.graph and self.graph.is_loaded
                with suppress(GpuDeviceLostError):
                    if is_same:
                        backup.put_back()
                    await backup.release()
                    if is_same:
                        self.tokens, self.states, self.windows = tokens, states, windows

    @property
    def images_s(self) -> float:
        """Return the seconds that the model has spent on images so far."""
        image_rows = self._model.image_rows
        return 0.0 if image_rows is None else image_rows.seconds

    async def inputs(self, tokens: Sequence[int], position: int) -> list[np.ndarray]:
        """Return the graph's inputs for these tokens at this position."""
        given = [np.array([tokens], np.int64), np.array([position])]
        image_rows, token_rows = self._model.image_rows, self._model.token_rows
        if image_rows is not None:
            given += await image_rows.read(tokens, self.tokens[:position])
        return given if token_rows is None else [*given, await token_rows.read(tokens)]

    def _go_back(self, shared: int) -> None:
        """Go back so that only `shared` of the tokens held count, restoring the states there."""
        position, copies = self._reachable(shared), self.graph.state_copies
        if copies is not None:
            self.states.go_back(copies, position)
        self.windows.go_back(position)
        del self.tokens[position:]

    def _reachable(self, shared: int) -> int:
        """Return the last position within what is shared that can be resumed."""
        most = self.states.last_up_to(shared) if self.graph.state_copies else shared
        return self.windows.last_up_to(self.graph.rings, most)

    def _end_of_chunk(self, tokens: Sequence[int], start: int) -> int:
        end = min(len(tokens), start + self._next_chunk(len(tokens) - start))
        images = self._model.image_rows
        return end if images is None else images.end_of_chunk(tokens, start, end)

    def _next_chunk(self, missing: int) -> int:
        """Return the next chunk's size; with states, a prompt's last tokens follow a copy alone."""
        if self._in_one:
            return self._model.max_chunk
        most, copies = self._pace.next_chunk(), self.graph.state_copies
        if copies is None or missing == 1:  # one token is a step of decoding
            return most
        if missing > TAIL:
            return min(most, missing - TAIL)
        self.states.keep_prompt(copies)
        return most

    async def _read_logits(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        return await self._model.graph.run(inputs, [LOGITS])

    async def _leave_logits(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        await self._model.graph.compute(inputs, [LOGITS])
        return []

    async def _run_chunk(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        await self._model.graph.compute(inputs, [])
        await self._model.graph.finish()
        return []

    # Decoding on the GPU -------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        return self._model.graph

    @property
    def token_rows(self) -> TokenRows | None:
        return self._model.token_rows

    @property
    def proposer(self) -> DraftModel | None:
        return self._model.proposer

    @cached_property
    def can_loop(self) -> bool:
        """Return whether the graph can be decoded without the host."""
        return can_loop(self.graph.program)

    async def decode_loop(self) -> DecodeLoop:
        if self._loop is None or self._looped is not self.graph:
            self._loop = await DecodeLoop.create(self.graph)
            self._verifier = None  # it went with the graph
            self._looped = self.graph
        return self._loop

    def speculation_mode(self, wanted: str) -> str:
        """Return whether tokens are proposed on this graph, where the caller wants that.

        By itself it happens where kernels for a few tokens cost little more than those for one: on
        the CPU, where they give a token the same numbers, and on graphics processors, where both
        are as exact as floats, unless one token is computed in halves. Rows of images are no tokens
        that an answer could repeat.
        """
        target = self.graph.target
        is_quick = target.cpu or (target.wide and target.one_token != HALVES)
        is_asked = wanted == ON or (wanted == AUTO and is_quick)
        if not is_asked or self._model.image_rows is not None:
            return OFF
        return wanted if can_verify(self.graph) else OFF

    def most_verified(self, position: int) -> int:
        """Return how many tokens a call may verify so that a ring still holds what they see."""
        rings, written = self.graph.rings, self.windows.written
        size = MOST_TOKENS
        while size > 1 and not all(
            ring.can_go_on(position + 1, max(written, position + size)) for ring in rings
        ):
            size -= 1
        return size

    async def verifier(self, loop: DecodeLoop) -> Verifier | None:
        """Return what verifies tokens for this loop; None where there is no room for it."""
        if self._verifier is None and self.speculation.is_possible:
            try:
                self._verifier = await Verifier.create(self.graph, loop.sampler)
            except (GpuOutOfMemoryError, GraphError):
                self.speculation.is_possible = False
        return self._verifier

    def drop_loop(self) -> None:
        """Free the loop's memory; the next answer creates another."""
        if self._verifier is not None:
            self._verifier.unload()
        self._verifier, self.speculation.is_possible = None, True
        if self._loop is not None:
            self._loop.unload()
        self._loop = self._looped = None


def _left_out(held: Sequence[int], wanted: Sequence[int]) -> int:
    """Return how many first tokens of what is held another text begins without; 0: it does not."""
    begin, best, most = list(wanted[:LEAST_ALIKE]), 0, 0
    if len(begin) < LEAST_ALIKE:
        return 0
    for drop in range(1, len(held) - LEAST_ALIKE + 1):
        if list(held[drop : drop + LEAST_ALIKE]) != begin:
            continue
        pairs = zip(held[drop:], wanted, strict=False)
        alike = next((at for at, (a, b) in enumerate(pairs) if a != b), len(held) - drop)
        if alike >= most and 2 * alike >= len(held) - drop:
            best, most = drop, alike
    return best
