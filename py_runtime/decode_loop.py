"""Decoding without the host: several steps in one submit, each fed by the token before it.

A round is one call of the decoder at a single token, then one dispatch of the sampling kernel: it
leaves its token where the next call looks for it. The host knows every position beforehand, so
shapes and grids are settled for a whole batch; live scalars that follow the position are moved on
by the kernel itself, in the graph's own arena.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from py_runtime.generation.device_sampler import (
    MOST_CHANGES,
    NO_TOKEN,
    STATE_HEADER,
    WORD,
    DeviceSampler,
)
from py_runtime.gpu import Plan, Read, Write
from py_runtime.graph import Graph
from py_runtime.program import Program
from py_runtime.sampling import NoFiniteLogitsError, SamplingSettings

TOKENS, POSITION = 0, 1  # the decoder's inputs
LOGITS = 0  # its output
ONE_TOKEN = np.zeros((1, 1), np.int64)  # what it is does not matter: the GPU writes the real one


@dataclass(frozen=True)
class Batch:
    tokens: list[int]
    draws: int  # random numbers used since the answer began


@dataclass(frozen=True)
class Run:
    steps: int  # that were started
    batch: "asyncio.Future[Batch]"


@dataclass(frozen=True)
class Course:
    """How the arena changes from one position to the next, through a whole batch."""

    steps: int
    changes: np.ndarray  # uint32 [n, 2]: (word, what is added at each step)


class DecodeLoop:
    """Use `await DecodeLoop.create(graph)`, where `can_loop` allows it."""

    def __init__(self, graph: Graph, sampler: DeviceSampler) -> None:
        self._graph = graph
        self._sampler = sampler
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
        return cls(graph, sampler)

    def first(
        self,
        settings: SamplingSettings,
        prompt: Sequence[int],
        answer: Sequence[int],
        seed: int,
        draws: int,
    ) -> "asyncio.Future[Batch]":
        """One token, drawn from the logits that the graph has just computed.

        It starts an answer, or goes on with one after so many tokens and random numbers.
        """
        begin = self._sampler.begin(settings, prompt, answer, seed, draws)
        counts = np.vstack([np.zeros_like(self._graph.live_counts(())), ONE_WORKGROUP])
        return self._submit(counts, [*begin, *self._sampler.batch(NO_CHANGES)], 1)

    def run(self, position: int, steps: int) -> Run:
        """Computes on from the last token drawn, at `position`, and draws: at most `steps` times.

        Batches may be started one after the other without waiting for their tokens.
        """
        course = self._settle(position, steps)
        graph = self._graph
        counts = np.vstack([graph.live_counts((LOGITS,)), ONE_WORKGROUP])
        writes = self._sampler.batch(course.changes)
        dirty = graph.arena.dirty()
        if dirty is not None:
            writes.append(Write(graph.uniforms, dirty[1].copy(), dirty[0]))
        graph.arena.uploaded()
        if len(course.changes):  # the kernel leaves them as the step after the last would have them
            words = course.changes[:, 0]
            graph.arena.mark_dirty(int(words.min()) * WORD, (int(words.max()) + 1) * WORD)
        return Run(course.steps, self._submit(counts, writes, course.steps))

    def _submit(
        self, counts: np.ndarray, writes: list[Write], rounds: int
    ) -> "asyncio.Future[Batch]":
        return asyncio.ensure_future(self._read(counts, writes, rounds))

    async def _read(self, counts: np.ndarray, writes: list[Write], rounds: int) -> Batch:
        read = Read(self._sampler.state, (STATE_HEADER + rounds) * WORD)
        (data,) = await self._graph.device.submit_and_read(
            self._plan, counts, writes, [read], rounds
        )
        _, draws, *tokens = data.view(np.uint32).tolist()
        if NO_TOKEN in tokens:
            raise NoFiniteLogitsError(self._sampler.vocabulary)
        return Batch(tokens, draws)

    def unload(self) -> None:
        self._graph.device.release([self._plan])
        self._sampler.unload()

    def _settle(self, position: int, steps: int) -> Course:
        """Resizes the graph for a batch that starts there; the arena ends as its first step."""
        if steps > 1:
            changes = self._changes(position, steps)
            if changes is not None:
                return Course(steps, changes)
        self._resize(position)
        return Course(1, NO_CHANGES)

    def _changes(self, position: int, steps: int) -> np.ndarray | None:
        """Compares the first, the second and the last step; None if they do not form a line.

        Live scalars grow with the position, by sums, products and floor divisions: where the ends
        and the slope agree, so does all between.
        """
        arena = self._graph.arena
        counts = []
        words = []
        for at in (position + steps - 1, position + 1, position):
            self._resize(at)
            words.append(arena.mirror.view(np.uint32).copy())
            counts.append(self._graph.live_counts((LOGITS,)))
        last, second, first = words
        slope = second - first  # uint32, wrapping round: what the kernel adds
        moving = np.flatnonzero(slope)
        is_line = np.array_equal(last, first + slope * np.uint32(steps - 1))
        same_grids = all(np.array_equal(counts[0], other) for other in counts[1:])
        if not is_line or not same_grids or len(moving) > MOST_CHANGES:
            return None
        return np.stack([moving, slope[moving]], axis=1).astype(np.uint32)

    def _resize(self, position: int) -> None:
        self._graph.maybe_resize([ONE_TOKEN, np.array([position])])


ONE_WORKGROUP = np.array([[1, 1, 1]], np.uint32)
NO_CHANGES = np.zeros((0, 2), np.uint32)


def can_loop(program: Program) -> bool:
    """Not where a kernel reads the position as a tensor, which nobody moves on."""
    position = program.inputs[POSITION].value
    readers = [call.name for call in program.ops if position in program.reads(call)]
    return all(name.startswith("et_vk.select_as_symint") for name in readers)
