"""A backup of a graph's states, so that other tokens can be computed in between."""

import numpy as np

from py_runtime.gpu import PLAN_COLUMNS, Buffer, BufferSpec, Copy, padded_size
from py_runtime.graph.graph import Graph
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import Program, TensorValue


class StateBackup:
    """The states of a graph as they were, on its device; use `await StateBackup.create(…)`."""

    def __init__(self, graph: Graph, states: list[Buffer], copies: list[Buffer]) -> None:
        self.graph = graph
        self._buffers = copies
        pairs = list(zip(states, copies, strict=True))
        there = [Copy(f"{s.label} into its backup", s, c) for s, c in pairs]
        back = [Copy(f"{s.label} from its backup", c, s) for s, c in pairs]
        self._plan = graph.device.create_plan(f"{graph.program.name} backup", [*there, *back])
        self._sizes = np.array([copy.size for copy in copies], np.uint32)

    @classmethod
    async def create(cls, graph: Graph, positions: int) -> "StateBackup":
        """Copy what the states hold of so many positions; GpuOutOfMemoryError if there is no room.

        Of caches these are rows; other states that ops write, and the copies that sessions keep of
        them, are copied whole.
        """
        rows = _cache_rows(graph.program)
        states: list[Buffer] = []
        sizes: list[int] = []
        for value_id in _written(graph.program):
            value = graph.program.values[value_id]
            assert isinstance(value, TensorValue)
            nbytes = value.gpu_bytes
            if value_id in rows:
                nbytes = nbytes // rows[value_id] * min(positions, rows[value_id])
            states.append(graph.buffer(value_id))
            sizes.append(padded_size(nbytes))
        copies = graph.state_copies.buffers if graph.state_copies is not None else ()
        states += copies
        sizes += [copy.size for copy in copies]
        specs = [BufferSpec(f"backup of {s.label}", n) for s, n in zip(states, sizes, strict=True)]
        backup = cls(graph, states, await graph.device.create_buffers(specs))
        backup._copy(slice(0, len(states)))
        return backup

    def put_back(self) -> None:
        """Restore the states."""
        self._copy(slice(len(self._sizes), None))

    async def release(self) -> None:
        device = self.graph.device
        await device.finish_writes()
        device.release([self._plan])
        device.destroy_buffers(self._buffers)

    def _copy(self, which: slice) -> None:
        counts = np.zeros((2 * len(self._sizes), PLAN_COLUMNS), np.uint32)
        counts[which, 2] = self._sizes
        self.graph.device.submit(self._plan, counts)


def _written(program: Program) -> list[int]:
    """Return the states that ops write: others hold what the host has put there."""
    found: dict[int, None] = {}
    for call in program.ops:
        row = REGISTRY[call.name]
        for name, value_id in zip(row.args, call.args, strict=True):
            value = program.values[value_id]
            if name in row.mutates and isinstance(value, TensorValue) and value.state:
                found[value_id] = None
    return list(found)


def _cache_rows(program: Program) -> dict[int, int]:
    """Return how many rows of positions each cache has."""
    found = {}
    for call in program.ops:
        names = REGISTRY[call.name].args
        for name in ("k_cache", "v_cache"):
            if name in names:
                value_id = call.args[names.index(name)]
                value = program.values[value_id]
                assert isinstance(value, TensorValue)
                if set(value.dims[:-3]) <= {1}:
                    found[value_id] = value.dims[-3]
    return found
