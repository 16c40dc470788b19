"""The live side of a graph: from the inputs follow every op's dims, scalars, parameters and grids.

Shapes recur: a chat goes from a prompt's length to 1 and back. The states of the last few shapes
are kept whole, so that returning to one costs only what the position changes.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.errors import GraphError, InputError
from py_runtime.base.shapes import Dims
from py_runtime.graph.builder import Builder
from py_runtime.graph.repeated_ops import Outcome, find_repeated_ops
from py_runtime.live.host_arrays import as_gpu_array, as_int
from py_runtime.live.values import Restorable
from py_runtime.program import SymIntValue

Array = np.ndarray
Shapes = tuple[Dims, ...]  # of the inputs
MAX_KEPT = 8


@dataclass
class ResizeStats:
    """Counts of the live work that the last call did; a static graph's calls do none."""

    ops_resized: int = 0


@dataclass(frozen=True)
class Snapshot:
    """Everything that a resize may change, as it was after a call."""

    values: dict[Restorable, Any]  # of what had changed by then
    counts: Array
    arena: Array


class LiveGraph:
    """The part of a graph that a call changes before anything is submitted to the GPU."""

    def __init__(self, builder: Builder, counts: Array) -> None:
        self.stats = ResizeStats()
        self._builder = builder
        self._program = builder.program
        self._journal = builder.journal
        self._arena = builder.arena
        self._counts = counts  # uint32 [steps, 3], which the launches write
        self.repeated_ops = find_repeated_ops(builder)  # None: no other op is like it
        self._settled = False  # whether every op has seen live state
        self._shapes: Shapes = ()  # of the last call
        self._kept: OrderedDict[Shapes, Snapshot] = OrderedDict()

    def settle(self) -> None:
        """Show every op the largest shapes once, so that a first call finds everything set."""
        for live_int in self._builder.symints.values():
            live_int.upload()
        self._journal.queue(range(len(self._program.ops)))
        try:
            self._propagate()
            self._settled = True
        except InputError as error:
            self._journal.rollback()
            if not self._builder.symints:
                raise GraphError(str(error)) from None
            # A SymInt's starting value may fit no shape; then the first call settles every op.
        self._journal.commit()

    def resize(self, inputs: Sequence[Any]) -> list[Array]:
        """Propagate dims and SymInts from the inputs through every op they reach, or nothing.

        Return the arrays as the GPU takes them. A failure leaves the graph as it was.
        """
        self.stats.ops_resized = 0
        arrays = self._check_inputs(inputs)
        shapes = tuple(array.shape for array in arrays if array is not None)
        before = self._come_back_to(shapes)
        try:
            self._set_inputs(inputs, arrays)
            for source in self._builder.host_sources:
                source.op.read_host(np.asarray(inputs[source.index]))
            if not self._settled:
                self._journal.queue(range(len(self._program.ops)))
            self._propagate()
        except BaseException:
            self._journal.rollback()
            if before is not None:
                self._restore_snapshot(before)
            raise
        self._settled = True
        self._journal.commit()
        self._shapes = shapes
        return [array for array in arrays if array is not None]

    def _propagate(self) -> None:
        """Update ops in chain order, dims and SymInts together: none sees the last call's state."""
        outcomes: dict[Hashable, Outcome] = {}
        while (index := self._journal.next_op()) is not None:
            self.stats.ops_resized += 1
            op, repeated = self._builder.ops[index], self.repeated_ops[index]
            if repeated is None:
                op.live()
                continue
            state = repeated.state()
            if state in outcomes:
                repeated.repeat(outcomes[state])
            else:
                op.live()
                outcomes[state] = repeated.outcome()

    # Inputs ------------------------------------------------------------------------------------

    def _check_inputs(self, inputs: Sequence[Any]) -> list[Array | None]:
        """Return the tensor inputs as the GPU takes them; None stands for a SymInt."""
        program = self._program
        if len(inputs) != len(program.inputs):
            raise InputError(f"the graph takes {len(program.inputs)} inputs, got {len(inputs)}")
        arrays: list[Array | None] = []
        for index, (entry, given) in enumerate(zip(program.inputs, inputs, strict=True)):
            if isinstance(program.values[entry.value], SymIntValue):
                arrays.append(None)
                continue
            tensor = self._builder.tensors[entry.value]
            array = as_gpu_array(index, tensor, given)
            tensor.check_dims(array.shape)
            for axis, size in enumerate(array.shape):
                if axis not in entry.dynamic_dims and size != tensor.max_dims[axis]:
                    raise InputError(
                        f"input {index} ({tensor.label}): dim {axis} is {size}, but it is fixed "
                        f"at {tensor.max_dims[axis]}"
                    )
            arrays.append(array)
        return arrays

    def _set_inputs(self, inputs: Sequence[Any], arrays: list[Array | None]) -> None:
        for index, (entry, array) in enumerate(zip(self._program.inputs, arrays, strict=True)):
            if array is None:
                self._builder.symints[entry.value].set(as_int(index, inputs[index]))
            else:
                self._builder.tensors[entry.value].resize(array.shape)

    # Shapes that come again --------------------------------------------------------------------

    def _come_back_to(self, shapes: Shapes) -> Snapshot | None:
        """Restore the kept state of these shapes, if any, and return the state it replaces."""
        if shapes == self._shapes or not self._settled:
            return None
        before = self._take_snapshot()
        if self._shapes:
            self._kept[self._shapes] = before
            self._kept.move_to_end(self._shapes)
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        if shapes not in self._kept:
            return None
        self._restore_snapshot(self._kept[shapes])
        return before

    def _take_snapshot(self) -> Snapshot:
        values = {holder: holder.value for holder in self._journal.holders}
        return Snapshot(values, self._counts.copy(), self._arena.mirror.copy())

    def _restore_snapshot(self, snapshot: Snapshot) -> None:
        for holder, first in self._journal.holders.items():
            holder.set_from_snapshot(snapshot.values.get(holder, first))
        self._counts[:] = snapshot.counts
        self._arena.replace(snapshot.arena)
