"""The steps an op contributes to the plan: kernel launches and buffer copies, with live sizes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from py_runtime.base.errors import GraphError
from py_runtime.base.shapes import ceil_div
from py_runtime.gpu import padded_size
from py_runtime.live.uniforms import ParamsLayout, UniformArena
from py_runtime.live.values import Journal, LiveInt, LiveTensor


@dataclass(eq=False)
class Joined:
    """Constants that lie in one buffer, one after the other."""

    label: str
    parts: tuple[LiveTensor, ...]

    @property
    def nbytes(self) -> int:
        return sum(part.max_bytes for part in self.parts)

    def offsets(self) -> Iterator[tuple[LiveTensor, int]]:
        """Yield each part and its offset in bytes."""
        offset = 0
        for part in self.parts:
            yield part, offset
            offset += part.max_bytes


@dataclass(eq=False)
class WeightSlice:
    """Some rows of a constant, in a buffer of their own."""

    label: str
    tensor: LiveTensor
    start: int  # in bytes
    nbytes: int


@dataclass(eq=False)
class Scratch:
    """Memory for one op while it runs."""

    label: str
    nbytes: int
    op_index: int


Grid = tuple[int, int, int]  # of workgroups
NO_GRID: Grid = (0, 0, 0)
Bindable = LiveTensor | LiveInt | Scratch | Joined | WeightSlice


def fold(groups: int, limit: int) -> tuple[int, int]:
    """Fold a linear workgroup count into a near-full (x, y).

    Kernels compute the linear index as y * num_workgroups.x + x.
    """
    rows = ceil_div(groups, limit)
    if rows > limit:
        raise GraphError(f"{groups} workgroups are more than a device runs ({limit} x {limit})")
    return ceil_div(groups, rows), rows


class Launch:
    """One dispatch; calling it sets its live grid and parameters, which the next run sends."""

    def __init__(
        self,
        label: str,
        layout: ParamsLayout,
        arena: UniformArena,
        group_limit: int,
        workgroup: int,
    ) -> None:
        self.label = label
        self.workgroup = workgroup  # invocations of one
        self.layout = layout
        self.offset = arena.reserve(layout.struct.size)
        self._arena = arena
        self._group_limit = group_limit
        self.value: tuple[Grid, bytes] = (NO_GRID, b"")  # and the packed parameters
        self.journal: Journal | None = None
        self.row = np.zeros(3, np.uint32).data  # becomes a view of the graph's count table

    def __call__(self, groups: int, **fields: object) -> None:
        """Set the number of workgroups and the parameters, by their WGSL names."""
        if fields.keys() != self.layout.name_set:
            raise GraphError(
                f"{self.label}: parameters {sorted(fields)} given, the shader has "
                f"{sorted(self.layout.names)}"
            )
        grid = (*fold(groups, self._group_limit), 1) if groups else NO_GRID
        self.change_to((grid, self.layout.pack(fields)))

    def for_each(self, things: int, **fields: object) -> None:
        """Set the grid so that each of `things` has an invocation."""
        self(ceil_div(things, self.workgroup), **fields)

    def skip(self) -> None:
        """Skip this launch: the call takes another route."""
        self.change_to((NO_GRID, self.value[1]))

    def change_to(self, value: tuple[Grid, bytes]) -> None:
        if value == self.value:
            return
        assert self.journal is not None, "launches are set inside a graph"
        self.journal.record(self, self.value)
        self._put(value)

    def _put(self, value: tuple[Grid, bytes]) -> None:
        grid, packed = self.value
        if value[0] != grid:
            self.row[0], self.row[1], self.row[2] = value[0]
        if value[1] != packed:
            self._arena.write(self.offset, value[1])
        self.value = value

    roll_back_to = _put

    def set_from_snapshot(self, value: tuple[Grid, bytes]) -> None:
        self.value = value


class BufferCopy:
    """One buffer-to-buffer copy from offset 0 to offset 0; calling it sets the number of bytes."""

    def __init__(self, label: str, source: LiveTensor, destination: LiveTensor) -> None:
        self.label = label
        self.source = source
        self.destination = destination
        self.journal: Journal | None = None
        self.row = np.zeros(3, np.uint32).data

    def __call__(self, nbytes: int) -> None:
        self.change_to(padded_size(nbytes))

    def change_to(self, value: int) -> None:
        if value == self.value:
            return
        assert self.journal is not None, "copies are set inside a graph"
        self.journal.record(self, self.value)
        self.row[2] = value

    @property
    def value(self) -> int:
        return self.row[2]

    def roll_back_to(self, old: int) -> None:
        self.row[2] = old

    def set_from_snapshot(self, value: int) -> None:
        """Do nothing: the row of the plan's table is all the state there is."""
