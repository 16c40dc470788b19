"""A reader of flatbuffers that takes no offset, length or vtable on trust.

Every position is checked against the buffer before it is read, and every table, element and
character counts against a budget: vectors that overlap cannot make a small file cost more than its
length.
"""

from struct import Struct, unpack_from
from typing import Any

from py_runtime.pte.errors import PteError

MAX_FIELDS = 16  # no table here has more; newer files may, and those are not looked at
FIXED_ITEMS = 4096  # a very small file may read this much whatever its length
MAX_ITEMS = 400_000  # a decoder of 32 layers has about 20,000; a page takes seconds for these

_U16_PAIR, _I32, _U32 = Struct("<HH"), Struct("<i"), Struct("<I")
_I8, _U8, _I64, _U64, _F64 = Struct("<b"), Struct("<B"), Struct("<q"), Struct("<Q"), Struct("<d")
_VTABLES = [Struct(f"<{count}H") for count in range(MAX_FIELDS + 1)]


class Budget:
    """A limit on the bytes read and the items looked at: about one item for each byte."""

    def __init__(self, file: str, file_size: int) -> None:
        self._file = file
        self._bytes_left = 2 * file_size  # what is inline is read a second time, on its own
        self._items_left = FIXED_ITEMS
        self._items_spent = 0

    def read(self, nbytes: int) -> None:
        """Account for bytes that are about to be read; each allows one more item."""
        self._bytes_left -= nbytes
        self._items_left += nbytes
        self._check()

    def spend(self, items: int) -> None:
        self._items_left -= items
        self._items_spent += items
        self._check()

    def _check(self) -> None:
        if self._bytes_left < 0 or self._items_left < 0:
            raise PteError(
                f"{self._file} is damaged: it refers to more than fits into it, parts overlap"
            )
        if self._items_spent > MAX_ITEMS:
            raise PteError(
                f"{self._file} has more than {MAX_ITEMS:,} parts, which is more than is read",
                "export a smaller model",
            )


class FlatBuffer:
    """A flatbuffer; `what` names it in messages."""

    def __init__(self, data: bytes, identifier: bytes, what: str, budget: Budget) -> None:
        self.data = data
        self.size = len(data)
        self.what = what
        self.budget = budget
        self._layouts: dict[int, tuple[int, tuple[int, ...]]] = {}  # by position of the vtable
        if data[4:8] != identifier:
            raise self.fault(f"bytes 4 to 7 are {data[4:8]!r}, not {identifier!r}")

    def root(self) -> "Table":
        return self.table_at(self.follow(0))

    def fault(self, text: str) -> PteError:
        return PteError(f"{self.what} is damaged: {text}")

    def check(self, position: int, nbytes: int) -> None:
        if position < 0 or position + nbytes > self.size:
            raise self.fault(f"{nbytes} bytes at {position} lie outside its {self.size} bytes")

    def follow(self, position: int) -> int:
        """Return where the offset at this position leads."""
        self.check(position, 4)
        return position + int(_U32.unpack_from(self.data, position)[0])

    def table_at(self, position: int) -> "Table":
        self.budget.spend(1)
        self.check(position, 4)
        table_size, fields = self._layout(position - _I32.unpack_from(self.data, position)[0])
        self.check(position, table_size)
        return Table(self, position, table_size, fields)

    def vector_at(self, position: int, width: int) -> tuple[int, int]:
        """Return the position of the first element and the number of elements."""
        self.check(position, 4)
        count = int(_U32.unpack_from(self.data, position)[0])
        self.check(position + 4, count * width)
        return position + 4, count

    def _layout(self, vtable: int) -> tuple[int, tuple[int, ...]]:
        """(bytes of a table, offset of each field in it); tables of one kind share a vtable."""
        if vtable not in self._layouts:
            self.check(vtable, 4)
            vtable_size, table_size = _U16_PAIR.unpack_from(self.data, vtable)
            if vtable_size < 4 or vtable_size % 2 or table_size < 4:
                raise self.fault(f"the vtable at {vtable} has sizes {vtable_size}, {table_size}")
            self.check(vtable, vtable_size)
            count = min((vtable_size - 4) // 2, MAX_FIELDS)
            self._layouts[vtable] = table_size, _VTABLES[count].unpack_from(self.data, vtable + 4)
        return self._layouts[vtable]


class Table:
    """A table: fields by their slot number; an absent one is 0, empty or None.

    (No field that is read here has another default.)
    """

    __slots__ = ("_buffer", "_fields", "_position", "_size")

    def __init__(
        self, buffer: FlatBuffer, position: int, size: int, fields: tuple[int, ...]
    ) -> None:
        self._buffer = buffer
        self._position = position
        self._size = size
        self._fields = fields

    # Scalars -----------------------------------------------------------------------------------

    def i8(self, slot: int) -> int:
        return int(self._scalar(slot, _I8))

    def u8(self, slot: int) -> int:
        return int(self._scalar(slot, _U8))

    def i32(self, slot: int) -> int:
        return int(self._scalar(slot, _I32))

    def u32(self, slot: int) -> int:
        return int(self._scalar(slot, _U32))

    def i64(self, slot: int) -> int:
        return int(self._scalar(slot, _I64))

    def u64(self, slot: int) -> int:
        return int(self._scalar(slot, _U64))

    def f64(self, slot: int) -> float:
        return float(self._scalar(slot, _F64))

    def boolean(self, slot: int) -> bool:
        return self.u8(slot) != 0

    # What lies elsewhere -----------------------------------------------------------------------

    def table(self, slot: int) -> "Table | None":
        position = self._target(slot)
        return None if position is None else self._buffer.table_at(position)

    def union(self, slot: int) -> tuple[int, "Table"]:
        """(kind, table): a union takes two slots."""
        kind, table = self.u8(slot), self.table(slot + 1)
        if table is None:
            raise self._buffer.fault(f"the union at {self._position} has no value")
        return kind, table

    def tables(self, slot: int) -> list["Table"]:
        first, offsets = self._vector(slot, "I", 4)
        table_at = self._buffer.table_at
        return [table_at(first + 4 * at + offset) for at, offset in enumerate(offsets)]

    def text(self, slot: int) -> str:
        begin, count = self.span(slot)
        self._buffer.budget.spend(count // 8)
        try:
            return str(self._buffer.data[begin : begin + count], "utf-8")
        except UnicodeDecodeError:
            raise self._buffer.fault(f"the string at {begin} is not UTF-8") from None

    def u8s(self, slot: int) -> tuple[int, ...]:
        return self._vector(slot, "B", 1)[1]

    def i32s(self, slot: int) -> tuple[int, ...]:
        return self._vector(slot, "i", 4)[1]

    def u32s(self, slot: int) -> tuple[int, ...]:
        return self._vector(slot, "I", 4)[1]

    def i64s(self, slot: int) -> tuple[int, ...]:
        return self._vector(slot, "q", 8)[1]

    def u64s(self, slot: int) -> tuple[int, ...]:
        return self._vector(slot, "Q", 8)[1]

    def f64s(self, slot: int) -> tuple[float, ...]:
        return self._vector(slot, "d", 8)[1]

    def booleans(self, slot: int) -> tuple[bool, ...]:
        return tuple(item != 0 for item in self.u8s(slot))

    def span(self, slot: int) -> tuple[int, int]:
        """(position in the buffer, length) of a vector of bytes, which is not read."""
        position = self._target(slot)
        return (0, 0) if position is None else self._buffer.vector_at(position, 1)

    def _vector(self, slot: int, form: str, width: int) -> tuple[int, tuple[Any, ...]]:
        """Return the position of the first element, and the elements."""
        position = self._target(slot)
        if position is None:
            return 0, ()
        first, count = self._buffer.vector_at(position, width)
        self._buffer.budget.spend(count)
        return first, unpack_from(f"<{count}{form}", self._buffer.data, first)

    def _target(self, slot: int) -> int | None:
        offset = self._offset(slot, 4)
        return None if offset is None else self._buffer.follow(self._position + offset)

    def _scalar(self, slot: int, form: Struct) -> float:
        offset = self._offset(slot, form.size)
        if offset is None:
            return 0
        value: float = form.unpack_from(self._buffer.data, self._position + offset)[0]
        return value

    def _offset(self, slot: int, width: int) -> int | None:
        """Return where in the table the field stands; None when it is absent."""
        offset = self._fields[slot] if slot < len(self._fields) else 0
        if offset == 0:
            return None
        if offset < 4 or offset + width > self._size:
            raise self._buffer.fault(
                f"field {slot} of the table at {self._position} lies outside its {self._size} bytes"
            )
        return offset
