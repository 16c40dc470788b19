"""Decoding without the host: several steps in one submit, each fed by the token before it.

A round is one call of the decoder at a single token, then one dispatch of the sampling kernel,
which writes its token where the next call reads it. The host knows every position beforehand, so
shapes and grids are settled for a whole batch; live scalars that follow the position are advanced
by the kernel itself, in the graph's own arena.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from py_runtime.decoder.words import PLACES
from py_runtime.generation.device_sampler import (
    MAX_CHANGES,
    NO_TOKEN,
    STATE_HEADER,
    WORD,
    DeviceSampler,
)
from py_runtime.gpu import Plan, Read, Write
from py_runtime.graph import Graph
from py_runtime.program import Program, TensorValue
from py_runtime.sampling import NoFiniteLogitsError, SamplingSettings

TOKENS, POSITION, OTHERS = 0, 1, 2  # the decoder's inputs; few take others
IMAGES, TOKEN_ROWS = "is_image", -1  # of these: where images are, by its name; the last
LOGITS = 0  # its output
MAX_STRETCHES = 8
ONE_TOKEN = np.zeros((1, 1), np.int64)  # a placeholder: the GPU writes the real token


@dataclass(frozen=True)
class Batch:
    """The tokens that one submit produced."""

    tokens: list[int]
    draws: int  # random numbers used since the answer began


@dataclass(frozen=True, eq=False)
class Drawing:
    """A batch that the GPU is computing."""

    steps: int
    vocabulary: int
    state: "asyncio.Future[list[np.ndarray]]"  # as the sampling kernel leaves it

    async def batch(self) -> Batch:
        (data,) = await self.state
        drawn, _, draws, *tokens = data.view(np.uint32).tolist()
        tokens = tokens[:drawn]
        if NO_TOKEN in tokens:
            raise NoFiniteLogitsError(self.vocabulary)
        return Batch(tokens, draws)

    def leave(self) -> None:
        """Abandon the batch: it ends by itself, before anything that follows it."""
        self.state.add_done_callback(lambda done: done.cancelled() or done.exception())


@dataclass(frozen=True, eq=False)
class Stretch:
    """Positions over which only words of the arena change, each by the same amount every step."""

    start: int
    end: int  # the position after the last
    words: np.ndarray  # uint32: the arena at the start
    changes: np.ndarray  # uint32 [n, 2]: (word, what is added at each step)
    counts: np.ndarray  # of the plan

    @cached_property
    def places(self) -> np.ndarray:
        """Return the indices of the words that change: uint32 [n]."""
        return self.changes[:, 0]

    @cached_property
    def moving(self) -> tuple[int, int]:
        """Return the byte range of the arena from the first such word to the last."""
        if not len(self.places):
            return self.words.nbytes, 0
        return int(self.places.min()) * WORD, (int(self.places.max()) + 1) * WORD

    def words_at(self, position: int) -> np.ndarray:
        """Return the words at a position, uint32 [n]; they wrap around as the kernel's do."""
        slope = self.changes[:, 1]
        words: np.ndarray = self.words[self.places] + slope * np.uint32(position - self.start)
        return words

    def holds(self, position: int, words: np.ndarray, counts: np.ndarray) -> bool:
        """Return whether a graph in this state at this position is on the stretch."""
        if not self.start <= position < self.end or not np.array_equal(counts, self.counts):
            return False
        expected = self.words.copy()
        expected[self.places] = self.words_at(position)
        return np.array_equal(words, expected)


class DecodeLoop:
    """A loop on the GPU; use `await DecodeLoop.create(graph)` where `can_loop` allows it."""

    def __init__(self, graph: Graph, sampler: DeviceSampler) -> None:
        self._graph = graph
        self.sampler = sampler
        # Found so far, the last one used first.
        self._stretches: deque[Stretch] = deque(maxlen=MAX_STRETCHES)
        self._is_on_stretch = False  # the graph on that one, since nobody else resized it
        program = graph.program
        others = [(given.value, program.values[given.value]) for given in program.inputs[OTHERS:]]
        self._others = [
            np.zeros((1, 1, value.dims[-1]), value.dtype.host)
            for _, value in others
            if isinstance(value, TensorValue)
        ]
        # A token that was drawn is of no image.
        self._no_image = [
            Write(graph.buffer(value_id), np.zeros(1, value.dtype.gpu))
            for value_id, value in others
            if isinstance(value, TensorValue) and value.name == IMAGES
        ]
        self._places = [
            (graph.buffer(value_id), value)
            for value_id, value in others
            if isinstance(value, TensorValue) and value.name == PLACES
        ]
        self._plan: Plan = graph.device.create_plan(
            f"{graph.program.name} decode loop", [*graph.plan_steps, sampler.step]
        )

    @classmethod
    async def create(cls, graph: Graph) -> "DecodeLoop":
        program = graph.program
        logits = program.outputs[LOGITS]
        sampler = await DeviceSampler.create(
            graph.device,
            graph.target,
            vocabulary=graph.live_dims(logits)[-1],
            logits=graph.buffer(logits),
            next_input=graph.buffer(program.inputs[TOKENS].value),
            arena=graph.uniforms,
        )
        try:
            await graph.compiled()  # last: the kernel above compiles meanwhile
        except BaseException:
            sampler.unload()
            raise
        return cls(graph, sampler)

    def first(
        self,
        settings: SamplingSettings,
        prompt: Sequence[int],
        answer: Sequence[int],
        seed: int,
        draws: int,
        shift: int = 0,
    ) -> Drawing:
        """Draw one token from the logits that the graph has just computed.

        It starts an answer, or resumes one after a number of tokens and random numbers. `shift` is
        how far the places of its tokens lie from their positions.
        """
        self._is_on_stretch = False
        begin = self.sampler.begin(settings, prompt, answer, seed, draws)
        counts = np.vstack([np.zeros_like(self._graph.live_counts(())), ONE_WORKGROUP])
        places = [
            Write(buffer, np.full(value.dims[-1], shift, value.dtype.gpu))
            for buffer, value in self._places
        ]
        writes = [*begin, *self._no_image, *places, *self.sampler.batch(NO_CHANGES)]
        return self._submit(counts, writes, 1)

    def run(
        self,
        position: int,
        steps: int,
        ahead: int | None = None,
        token_rows: np.ndarray | None = None,
    ) -> Drawing:
        """Decode on from the last token drawn, at `position`, for at most `steps` tokens.

        Batches may be started one after the other without waiting for their tokens; `ahead` is how
        many steps there may be including those that follow. `token_rows` [1, 1, columns] is that
        token's row if the decoder takes one; then there is one step.
        """
        stretch = self._stretch_from(position, max(steps, ahead or 0))
        arena = self._graph.arena
        # The GPU has the words as after the last batch, the mirror as at the last resize.
        arena.mark_dirty(*stretch.moving)
        writes = self.sampler.batch(stretch.changes)
        dirty = arena.dirty()
        if dirty is not None:
            offset, data = dirty[0], dirty[1].copy()
            data.view(np.uint32)[stretch.places - offset // WORD] = stretch.words_at(position)
            writes.append(Write(self._graph.uniforms, data, offset))
        if token_rows is not None:
            buffer = self._graph.buffer(self._graph.program.inputs[TOKEN_ROWS].value)
            writes.append(Write(buffer, token_rows))
        arena.uploaded()
        arena.mark_dirty(*stretch.moving)
        return self._submit(stretch.counts, writes, min(steps, stretch.end - position))

    def _submit(self, counts: np.ndarray, writes: list[Write], rounds: int) -> Drawing:
        read = Read(self.sampler.state, (STATE_HEADER + rounds) * WORD)
        device, vocabulary = self._graph.device, self.sampler.vocabulary
        state = device.submit_to_read(self._plan, counts, writes, [read], rounds)
        return Drawing(rounds, vocabulary, state)

    def unload(self) -> None:
        self._graph.device.release([self._plan])
        self.sampler.unload()

    def _stretch_from(self, position: int, steps: int) -> Stretch:
        """Return a stretch found before, if it still holds there, or a new one."""
        if self._is_on_stretch and self._stretches[0].start <= position < self._stretches[0].end:
            return self._stretches[0]
        words, counts = self._resized(position)
        holding = (known for known in self._stretches if known.holds(position, words, counts))
        stretch = next(holding, None)
        if stretch is None:
            stretch = self._new_stretch(position, steps, words, counts)
        else:
            self._stretches.remove(stretch)
        self._stretches.appendleft(stretch)
        self._is_on_stretch = True
        return stretch

    def _new_stretch(
        self, start: int, steps: int, words: np.ndarray, counts: np.ndarray
    ) -> Stretch:
        """Find the longest stretch of at most `steps`; a single step always is one.

        Live scalars grow with the position, by sums, products and floor divisions: where the ends
        and the slope agree, so does everything between.
        """
        if steps == 1:
            return Stretch(start, start + 1, words, NO_CHANGES, counts)
        slope = self._resized(start + 1)[0] - words  # uint32, wrapping round: what the kernel adds
        moving = np.flatnonzero(slope)
        changes = np.stack([moving, slope[moving]], axis=1).astype(np.uint32)
        while steps > 1 and len(moving) <= MAX_CHANGES:
            last, last_counts = self._resized(start + steps - 1)
            is_straight = np.array_equal(last, words + slope * np.uint32(steps - 1))
            if is_straight and np.array_equal(counts, last_counts):
                return Stretch(start, start + steps, words, changes, counts)
            steps //= 2
        self._resized(start)
        return Stretch(start, start + 1, words, NO_CHANGES, counts)

    def _resized(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the arena and the plan's counts for one token at this position."""
        graph = self._graph
        graph.maybe_resize([ONE_TOKEN, np.array([position]), *self._others])
        counts = np.vstack([graph.live_counts((LOGITS,)), ONE_WORKGROUP])
        return graph.arena.mirror.view(np.uint32).copy(), counts


ONE_WORKGROUP = np.array([[1, 1, 1]], np.uint32)
NO_CHANGES = np.zeros((0, 2), np.uint32)


def can_loop(program: Program) -> bool:
    """Return False if a kernel reads the position as a tensor, which nothing advances."""
    position = program.inputs[POSITION].value
    reading = [call.name for call in program.ops if position in program.reads(call)]
    return all(name.startswith("et_vk.select_as_symint") for name in reading)
