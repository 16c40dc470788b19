"""States that sum up all tokens so far.

Unlike a cache with a row for each position, they cannot be cut back to an earlier position; they
are copied at one and restored later.
"""

from collections.abc import Sequence

import numpy as np

from py_runtime.gpu import PLAN_COLUMNS, Buffer, Copy, Device, Plan, padded_size
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import Program, TensorValue

COPIES = 3  # places that all states of a graph can be copied to


def carried_states(program: Program) -> list[int]:
    """Return the value ids of carried states; empty for a decoder that has caches only."""
    found: dict[int, None] = {}
    for call in program.ops:
        row = REGISTRY[call.name]
        for name, value_id in zip(row.args, call.args, strict=False):
            if name in row.carries:
                found[value_id] = None
    return list(found)


def copied_bytes(program: Program) -> int:
    """Return the bytes that one copy of all states takes."""
    return sum(_nbytes(program, value_id) for value_id in carried_states(program))


def _nbytes(program: Program, value_id: int) -> int:
    value = program.values[value_id]
    assert isinstance(value, TensorValue), "ops check what they are given before"
    return padded_size(value.gpu_bytes)


class StateCopies:
    """Copies of the states on the GPU, made in submission order."""

    def __init__(
        self, device: Device, name: str, states: Sequence[Buffer], copies: Sequence[Buffer]
    ) -> None:
        """Create the copier; each of `copies` is as long as all states together."""
        self._device = device
        self.buffers = tuple(copies)
        self._ways = [(state, copy) for copy in copies for state in states]
        there = [Copy(f"{s.label} into {c.label}", s, c) for s, c in self._ways]
        back = [Copy(f"{s.label} from {c.label}", c, s) for s, c in self._ways]
        self.plan: Plan = device.create_plan(f"{name} states", [*there, *back])
        self._sizes = np.array([state.size for state in states], np.uint32)
        self._offsets = np.cumsum(self._sizes, dtype=np.uint32) - self._sizes

    def keep(self, copy: int) -> None:
        """Save the current states in this copy."""
        rows, counts = self._rows(copy)
        counts[rows, 1], counts[rows, 2] = self._offsets, self._sizes
        self._device.submit(self.plan, counts)

    def put_back(self, copy: int) -> None:
        """Restore the states from this copy."""
        rows, counts = self._rows(copy)
        back = slice(rows.start + len(self._ways), rows.stop + len(self._ways))
        counts[back, 0], counts[back, 2] = self._offsets, self._sizes
        self._device.submit(self.plan, counts)

    def _rows(self, copy: int) -> tuple[slice, np.ndarray]:
        first = copy * len(self._sizes)
        counts = np.zeros((2 * len(self._ways), PLAN_COLUMNS), np.uint32)
        return slice(first, first + len(self._sizes)), counts
