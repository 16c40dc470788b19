"""The seconds that a graph's plan takes: of many replays at once, by the wall clock.

Browsers round timestamps to more than one product takes, so they are not used.
"""

import time

import numpy as np

from py_runtime.gpu import Device, Read
from py_runtime.graph.graph import Graph

MAX_REPEATS = 8


class TimedPlan:
    """The plan of a graph that has run, several times over in one command buffer.

    Each command buffer takes as long to submit as a few products.
    """

    def __init__(self, device: Device, graph: Graph, rounds: int, sample_seconds: float) -> None:
        self._device, self._graph = device, graph
        self._rounds, self._sample_seconds = rounds, sample_seconds
        self._plan = device.create_plan("measurement", [*graph.plan_steps] * rounds)
        self._read = Read(graph.buffer(graph.program.outputs[0]), 4)
        self._repeats = 1

    async def seconds(self) -> float:
        """Return the seconds of one run, at the live shapes of the graph's last one.

        Enough are submitted at once that the round trip does not matter.
        """
        while True:
            taken = await self._submit()
            if taken >= self._sample_seconds or self._repeats >= MAX_REPEATS:
                return taken / (self._repeats * self._rounds)
            self._repeats *= 2

    async def _submit(self) -> float:
        started = time.perf_counter()
        wanted = tuple(range(len(self._graph.program.outputs)))
        counts = np.tile(self._graph.live_counts(wanted), (self._rounds, 1))
        await self._device.submit_and_read(self._plan, counts, [], [self._read], self._repeats)
        return time.perf_counter() - started

    def release(self) -> None:
        """Drop the plan; the graph goes on."""
        self._device.release([self._plan])
