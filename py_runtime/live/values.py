"""Live state: the dims of tensors and the values of SymInts as the current call has them.

Every change goes through a Journal, so that a call that fails half-way leaves no trace, and so that
the ops reading a changed value are found without walking the whole chain.
"""

import heapq
import struct
from collections.abc import Sequence
from typing import Any, Protocol

from py_runtime.base.dtypes import DType
from py_runtime.base.errors import GraphError, InputError
from py_runtime.base.shapes import Dims, numel
from py_runtime.live.uniforms import SYMINT_BYTES, UniformArena
from py_runtime.program import INT32_MAX, INT32_MIN


class Restorable(Protocol):
    """A holder of live state that a resize changes and a journal restores."""

    @property
    def value(self) -> Any:
        """Return the current value."""

    def change_to(self, value: Any) -> None:
        """Change the value and record that in the journal; graph/repeated_ops.py uses it."""

    def roll_back_to(self, old: Any) -> None:
        """Undo a change, including its effect on the arena or on a grid."""

    def set_from_snapshot(self, value: Any) -> None:
        """Set the value alone: a snapshot restores the arena and the grids as a whole."""


class Journal:
    """The changes of one resize, and the ops that still have to see them."""

    def __init__(self, op_count: int) -> None:
        self.holders: dict[Restorable, Any] = {}  # whatever changed, ever, and what it was before
        self._changes: list[tuple[Restorable, Any]] = []
        self._pending: list[int] = []  # heap of op indices: chain order
        self._queued = bytearray(op_count)

    def record(self, changed: Restorable, old: Any) -> None:
        self.holders.setdefault(changed, old)
        self._changes.append((changed, old))

    def queue(self, ops: Sequence[int]) -> None:
        for index in ops:
            if not self._queued[index]:
                self._queued[index] = 1
                heapq.heappush(self._pending, index)

    def next_op(self) -> int | None:
        """Return the first op in chain order with a changed argument, once per resize."""
        if not self._pending:
            return None
        index = heapq.heappop(self._pending)
        self._queued[index] = 0
        return index

    def commit(self) -> None:
        self._changes.clear()

    def rollback(self) -> None:
        for changed, old in reversed(self._changes):
            changed.roll_back_to(old)
        self._changes.clear()
        while self.next_op() is not None:
            pass


class LiveTensor:
    """A tensor's live dims under its maximum dims; its buffer never moves."""

    def __init__(self, value_id: int, label: str, dtype: DType, max_dims: Dims) -> None:
        self.id = value_id
        self.label = label
        self.dtype = dtype
        self.max_dims = max_dims
        self.dims = max_dims
        self.read_by: list[int] = []  # ops that take it as an argument
        self.journal: Journal | None = None

    @property
    def rank(self) -> int:
        return len(self.max_dims)

    @property
    def max_bytes(self) -> int:
        return self.dtype.bytes_of(numel(self.max_dims))

    @property
    def live_bytes(self) -> int:
        return self.dtype.bytes_of(numel(self.dims))

    def resize(self, dims: Dims) -> None:
        if dims == self.dims:
            return
        self.check_dims(dims)
        self.change_to(dims)

    @property
    def value(self) -> Dims:
        return self.dims

    def change_to(self, value: Dims) -> None:
        if value == self.dims:
            return
        assert self.journal is not None, "tensors are resized inside a graph"
        self.journal.record(self, self.dims)
        self.dims = value
        self.journal.queue(self.read_by)

    def check_dims(self, dims: Dims) -> None:
        if len(dims) != len(self.max_dims):
            raise InputError(
                f"{self.label} has rank {len(self.max_dims)}, got dims {list(dims)} of rank "
                f"{len(dims)}"
            )
        for axis, (size, most) in enumerate(zip(dims, self.max_dims, strict=True)):
            if size < 1:
                raise InputError(
                    f"{self.label}: dim {axis} is {size}; empty tensors cannot be computed on"
                )
            if size > most:
                raise InputError(
                    f"{self.label}: dim {axis} is {size}, above its maximum {most} (dims "
                    f"{list(dims)}, at most {list(self.max_dims)})"
                )

    def roll_back_to(self, old: Dims) -> None:
        self.dims = old

    set_from_snapshot = roll_back_to


class LiveInt:
    """A scalar argument: a SymInt with a uniform slot, or an int that never changes.

    Kernels may bind either; a fixed int gets its slot when a kernel first asks for one.
    """

    def __init__(self, value_id: int, label: str, value: int, is_symint: bool) -> None:
        self.id = value_id
        self.label = label
        self.value = value
        self.is_symint = is_symint
        self.offset: int | None = None  # of its slot in the arena
        self.read_by: list[int] = []
        self.journal: Journal | None = None
        self._arena: UniformArena | None = None

    def slot(self, arena: UniformArena) -> int:
        if self.offset is None:
            self.offset = arena.reserve(SYMINT_BYTES)
            self._arena = arena
        return self.offset

    def set(self, value: int) -> None:
        if not self.is_symint:
            raise GraphError(f"{self.label} is not a SymInt and cannot be set")
        if value == self.value:
            return
        if not INT32_MIN <= value <= INT32_MAX:
            raise InputError(f"{self.label}: {value} is not an int32")
        assert self.journal is not None, "SymInts are set inside a graph"
        self.journal.record(self, self.value)
        self.value = value
        self.upload()
        self.journal.queue(self.read_by)

    change_to = set

    def upload(self) -> None:
        """Write the value to the arena's mirror; 12 zero bytes follow from the seal."""
        if self._arena is not None and self.offset is not None:
            self._arena.write(self.offset, struct.pack("<i", self.value))

    def roll_back_to(self, old: int) -> None:
        self.value = old
        self.upload()

    def set_from_snapshot(self, value: int) -> None:
        self.value = value
