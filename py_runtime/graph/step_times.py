"""The time of each step of a plan: by the device's clock, or by ours where it has none.

Without timestamps the plan runs in segments, each waited for; what waiting itself takes is measured
and subtracted. Such times are those of segments, and rougher.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.gpu import Read
from py_runtime.gpu.interface import TIMESTAMPS
from py_runtime.graph.graph import Graph

BY_DEVICE, BY_SEGMENTS = "device", "segments"
MAX_SEGMENTS = 48  # each costs a wait
WAITS = 5  # that are measured


@dataclass(frozen=True)
class StepTimes:
    """The steps of one run of a plan, and what they took."""

    counts: np.ndarray  # u32 [steps, 3]: the live grids
    nanoseconds: np.ndarray  # f64 [steps]; of segments: in their first live step
    by: str  # BY_DEVICE or BY_SEGMENTS
    segments: tuple[tuple[int, int], ...] = ()  # first step, and the one behind the last


def nothing() -> None:
    """Do nothing after a run."""


async def time_steps(
    graph: Graph,
    inputs: Sequence[Any],
    outputs: Sequence[int] | None = None,
    repeats: int = 3,
    after_run: Callable[[], None] = nothing,
) -> StepTimes:
    """Measure each step of `graph.run`, after a run that warms up: medians of several runs.

    State is written as in any run. `after_run` may raise to end it.
    """
    async with graph.lock:
        await graph.compiled()
        graph.upload(inputs)
        wanted = tuple(range(len(graph.program.outputs)) if outputs is None else outputs)
        counts = graph.live_counts(wanted)
        if TIMESTAMPS in graph.device.features:
            runs = []
            for _ in range(repeats + 1):
                runs.append(await graph.device.time_steps(graph.plan, counts))
                after_run()
            return StepTimes(counts, np.median(runs[1:], axis=0), BY_DEVICE)
        segments = _segments(graph, counts)
        waiting = min([await _took(graph, np.zeros_like(counts)) for _ in range(WAITS)])
        taken = []
        for _ in range(repeats + 1):
            taken.append([await _took(graph, _only(counts, each)) - waiting for each in segments])
            after_run()
        nanoseconds = np.zeros(len(counts))
        medians = np.maximum(np.median(taken[1:], axis=0), 0)
        nanoseconds[[first for first, _ in segments]] = 1e9 * medians
        return StepTimes(counts, nanoseconds, BY_SEGMENTS, segments)


def _segments(graph: Graph, counts: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Cut the plan where ops end, into pieces of about as many live steps."""
    live = np.flatnonzero(counts.any(axis=1))
    ops = np.array(graph.builder.step_ops)
    size = max(1, -(-len(live) // MAX_SEGMENTS))
    starts: list[int] = []
    in_piece = 0
    for number, step in enumerate(live.tolist()):
        is_new_op = number == 0 or ops[step] != ops[live[number - 1]]
        if not starts or (in_piece >= size and is_new_op):
            starts.append(step)
            in_piece = 0
        in_piece += 1
    return tuple(zip(starts, [*starts[1:], len(counts)], strict=True))


def _only(counts: np.ndarray, segment: tuple[int, int]) -> np.ndarray:
    masked = np.zeros_like(counts)
    masked[slice(*segment)] = counts[slice(*segment)]
    return masked


async def _took(graph: Graph, counts: np.ndarray) -> float:
    """Run these steps, wait for them, and return the seconds."""
    read = Read(graph.uniforms, 4)
    started = time.perf_counter()
    await graph.device.submit_and_read(graph.plan, counts, [], [read])
    return time.perf_counter() - started
