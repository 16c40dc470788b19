"""The header of a GGUF file, read without trust: nothing is allocated that the file cannot hold.

A walk goes through the header's first bytes. Where those are too few it says how many it wants, and
resumes at the entry it had reached once it has them.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from py_runtime.base.shapes import round_up
from py_runtime.base.sizes import in_words
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError, shown
from py_runtime.gguf.metadata import Item, Metadata, Value, ValueType
from py_runtime.gguf.tensor_types import TENSOR_TYPES, WITHDRAWN, TensorType

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_HEADER = 64 << 20  # bytes
MAX_ENTRIES = 100_000  # of metadata
MAX_TENSORS = 100_000
MAX_KEY = 65_535  # bytes
MAX_TENSOR_NAME = 63  # bytes
MAX_TEXT = 16 << 20  # bytes: a template
MAX_ITEMS = 2_000_000  # of an array
MAX_DIMS = 4
MAX_DIM = 2**31
MAX_ELEMENTS = 2**53
ALIGNMENT_KEY = "general.alignment"
DEFAULT_ALIGNMENT, MIN_ALIGNMENT, MAX_ALIGNMENT = 32, 8, 4096

START = struct.Struct("<4sIQQ")  # magic, version, tensors, entries of metadata
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
LENGTH = U64.size  # bytes before a text that tell its own
MIN_ENTRY = LENGTH + 1 + U32.size + 1  # a key of one byte, a type, a value of one byte
MIN_TENSOR = LENGTH + 1 + U32.size + U64.size + U32.size + U64.size
SCALARS: dict[ValueType, np.dtype[Any]] = {
    ValueType.U8: np.dtype("<u1"),
    ValueType.I8: np.dtype("<i1"),
    ValueType.U16: np.dtype("<u2"),
    ValueType.I16: np.dtype("<i2"),
    ValueType.U32: np.dtype("<u4"),
    ValueType.I32: np.dtype("<i4"),
    ValueType.F32: np.dtype("<f4"),
    ValueType.BOOL: np.dtype("<u1"),
    ValueType.U64: np.dtype("<u8"),
    ValueType.I64: np.dtype("<i8"),
    ValueType.F64: np.dtype("<f8"),
}


@dataclass(frozen=True)
class TensorInfo:
    """The place of a tensor in its file, its type and its dims."""

    name: str
    kind: TensorType
    dims: tuple[int, ...]  # outermost first, as everywhere but in the file
    offset: int  # in the file
    nbytes: int


@dataclass(frozen=True)
class GgufHeader:
    """The header: all that a file says about itself."""

    metadata: Metadata
    tensors: tuple[TensorInfo, ...]


class TooFewBytes(Exception):
    """A request for the file's first `wanted` bytes, which is no fault of the file."""

    def __init__(self, wanted: int) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class HeaderWalk:
    """A walk through a header: `read` again, with more bytes, until it returns the header."""

    def __init__(self, file: str, file_size: int) -> None:
        self._file = file
        self._file_size = file_size
        self._data = b""
        self._at = 0
        self._counts: tuple[int, int] | None = None  # tensors, entries
        self._unfinished: dict[int, tuple[list[str], int]] = {}  # by place: texts, and their end
        self._values: dict[str, Value] = {}
        self._tensors: dict[str, TensorInfo] = {}
        self._alignment = DEFAULT_ALIGNMENT
        self._data_bytes = 0  # of the tensors so far, with what pads them

    def read(self, data: bytes) -> GgufHeader:
        """Read the header from the first bytes of the file.

        TooFewBytes where they end too early.
        """
        self._data = data
        if self._counts is None:
            self._counts = self._read_start()
        tensors, entries = self._counts
        while len(self._values) < entries:
            self._read_whole(self._read_entry)
        self._alignment = self._read_alignment()
        while len(self._tensors) < tensors:
            self._read_whole(self._read_tensor)
        return GgufHeader(Metadata(self._file, self._values), self._place_tensors())

    def _read_whole(self, read: Callable[[], None]) -> None:
        """Read one entry whole, or nothing of it."""
        before = self._at
        try:
            read()
        except TooFewBytes:
            self._at = before
            raise

    # The parts of a header -----------------------------------------------------------------------

    def _read_start(self) -> tuple[int, int]:
        if self._file_size < START.size or self._take(len(MAGIC)) != MAGIC:
            raise GgufError(f"{self._file} is not a GGUF file: it does not begin with 'GGUF'")
        self._at = 0
        _, version, tensors, entries = START.unpack(self._take(START.size))
        if version and version & 0xFFFFFF == 0:  # a small number, its bytes the other way round
            raise UnsupportedGgufError(
                f"{self._file} is a GGUF file for big-endian machines", "get the usual kind"
            )
        if version not in VERSIONS:
            raise UnsupportedGgufError(
                f"{self._file} is of version {version} of GGUF; only 2 and 3 are read",
                "get a newer file of this model" if version < VERSIONS[0] else "update this engine",
            )
        for count, most, least, what in (
            (entries, MAX_ENTRIES, MIN_ENTRY, "entries of metadata"),
            (tensors, MAX_TENSORS, MIN_TENSOR, "tensors"),
        ):
            if count > most:
                self._fault(f"it claims {count} {what}; at most {most} are read")
            if count * least > self._file_size - self._at:
                self._fault(f"it claims {count} {what}, for which it is too short")
        return tensors, entries

    def _read_entry(self) -> None:
        key = self._text("the name of an entry of metadata", MAX_KEY)
        if not key:
            self._fault("an entry of its metadata has no name")
        if key in self._values:
            self._fault(f"its metadata has {shown(key)} twice")
        kind = self._value_type(key)
        if kind is ValueType.ARRAY:
            self._values[key] = self._array(key)
        else:
            self._values[key] = Value(kind, self._scalar(key, kind))

    def _read_alignment(self) -> int:
        if ALIGNMENT_KEY not in self._values:
            return DEFAULT_ALIGNMENT
        metadata = Metadata(self._file, self._values)
        alignment = metadata.integer(ALIGNMENT_KEY, MIN_ALIGNMENT, MAX_ALIGNMENT)
        if alignment.bit_count() != 1:
            raise metadata.fault(ALIGNMENT_KEY, f"is {alignment}, which is not a power of two")
        return alignment

    def _read_tensor(self) -> None:
        name = self._text("the name of a tensor", MAX_TENSOR_NAME)
        if not name:
            self._fault("a tensor has no name")
        if name in self._tensors:
            self._fault(f"it has the tensor {shown(name)} twice")
        (count,) = U32.unpack(self._take(U32.size))
        if not 1 <= count <= MAX_DIMS:
            self._fault(f"the tensor {shown(name)} has {count} dims, not 1 to {MAX_DIMS}")
        sizes = struct.unpack(f"<{count}Q", self._take(count * U64.size))  # innermost first
        elements = 1
        for size in sizes:
            if not 1 <= size <= MAX_DIM:
                self._fault(f"the tensor {shown(name)} has a dim of {size}, not 1 to {MAX_DIM}")
            elements *= size
        if elements >= MAX_ELEMENTS:
            self._fault(f"the tensor {shown(name)} claims {elements} values")
        kind = self._tensor_type(name)
        if sizes[0] % kind.values:
            self._fault(
                f"the tensor {shown(name)} has rows of {sizes[0]} values, but {kind.name} stores "
                f"{kind.values} together"
            )
        (offset,) = U64.unpack(self._take(U64.size))
        if offset != self._data_bytes:
            self._fault(
                f"the tensor {shown(name)} is said to begin at byte {offset} of the data, but the "
                f"tensors before it end at {self._data_bytes}"
            )
        nbytes = elements // kind.values * kind.nbytes
        self._tensors[name] = TensorInfo(name, kind, tuple(reversed(sizes)), offset, nbytes)
        self._data_bytes = round_up(offset + nbytes, self._alignment)

    def _place_tensors(self) -> tuple[TensorInfo, ...]:
        """Return the tensors' places: data begin behind the padded header and end with the file."""
        start = round_up(self._at, self._alignment)
        tensors = tuple(
            TensorInfo(info.name, info.kind, info.dims, start + info.offset, info.nbytes)
            for info in self._tensors.values()
        )
        if not tensors:
            return ()
        end = tensors[-1].offset + tensors[-1].nbytes
        if self._file_size < end:
            self._fault(
                f"it has {in_words(self._file_size)}, but its tensors take {in_words(end)}: it is "
                "cut short"
            )
        if self._file_size > round_up(end, self._alignment):
            self._fault(f"{self._file_size - end} bytes follow its last tensor")
        return tensors

    # What they are made of -----------------------------------------------------------------------

    def _array(self, key: str) -> Value:
        kind = self._value_type(key)
        if kind is ValueType.ARRAY:
            self._fault(f"its metadata {shown(key)} has arrays inside an array")
        (count,) = U64.unpack(self._take(U64.size))
        if count > MAX_ITEMS:
            self._fault(
                f"its metadata {shown(key)} claims {count} items; at most {MAX_ITEMS} are read"
            )
        least = LENGTH if kind is ValueType.TEXT else SCALARS[kind].itemsize
        if count * least > self._file_size - self._at:
            self._fault(
                f"its metadata {shown(key)} claims {count} items, for which the file is too short"
            )
        if kind is ValueType.TEXT:
            return Value(kind, self._texts(key, count), is_array=True)
        dtype = SCALARS[kind]
        array = np.frombuffer(self._take(count * dtype.itemsize), dtype)
        if kind is ValueType.BOOL and (array > 1).any():
            self._fault(f"its metadata {shown(key)} has a bool that is neither 0 nor 1")
        return Value(kind, array, is_array=True)

    def _texts(self, key: str, count: int) -> list[str]:
        """Read an array of texts; for a vocabulary this loop takes most of a header's time."""
        data, known = self._data, len(self._data)
        length_at = U64.unpack_from
        first = self._at
        texts, at = self._unfinished.pop(first, ([], first))
        try:
            for _ in range(count - len(texts)):
                begin = at + LENGTH
                if begin > known:
                    self._require(begin)
                (length,) = length_at(data, at)
                if length > MAX_TEXT:
                    self._too_long(f"item {len(texts)} of {shown(key)}", length, MAX_TEXT)
                end = begin + length
                if end > known:
                    self._require(end)
                texts.append(data[begin:end].decode())
                at = end
        except TooFewBytes:
            self._unfinished[first] = texts, at
            raise
        except UnicodeDecodeError:
            self._fault(f"item {len(texts)} of its metadata {shown(key)} is not UTF-8 text")
        self._at = at
        return texts

    def _scalar(self, key: str, kind: ValueType) -> Item:
        if kind is ValueType.TEXT:
            return self._text(f"its metadata {shown(key)}", MAX_TEXT)
        dtype = SCALARS[kind]
        item: int | float = np.frombuffer(self._take(dtype.itemsize), dtype)[0].item()
        if kind is not ValueType.BOOL:
            return item
        if item not in (0, 1):
            self._fault(f"its metadata {shown(key)} is a bool of the value {item}")
        return bool(item)

    def _value_type(self, key: str) -> ValueType:
        (number,) = U32.unpack(self._take(U32.size))
        if number > max(ValueType):
            self._fault(f"its metadata {shown(key)} is of the unknown type {number}")
        return ValueType(number)

    def _tensor_type(self, name: str) -> TensorType:
        (number,) = U32.unpack(self._take(U32.size))
        if number in TENSOR_TYPES:
            return TENSOR_TYPES[number]
        if number in WITHDRAWN:
            raise UnsupportedGgufError(
                f"{self._file}: the tensor {shown(name)} is {WITHDRAWN[number]}, a type that GGUF "
                "has no more",
                "get a newer file of this model",
            )
        raise UnsupportedGgufError(
            f"{self._file}: the tensor {shown(name)} is of the type {number}, which this engine "
            "does not know",
            "get the model in another quantisation, such as Q4_K_M or Q8_0",
        )

    def _text(self, what: str, most: int) -> str:
        (length,) = U64.unpack(self._take(LENGTH))
        if length > most:
            self._too_long(what, length, most)
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            self._fault(f"{what} is not UTF-8 text")

    def _take(self, nbytes: int) -> bytes:
        begin, end = self._at, self._at + nbytes
        if end > len(self._data):
            self._require(end)
        self._at = end
        return self._data[begin:end]

    def _require(self, wanted: int) -> NoReturn:
        if wanted > self._file_size:
            self._fault(f"it ends after {self._file_size} bytes, in the middle of its header")
        if wanted > MAX_HEADER:
            self._fault(f"its header has more than {in_words(MAX_HEADER)}")
        raise TooFewBytes(wanted)

    def _too_long(self, what: str, length: int, most: int) -> NoReturn:
        self._fault(f"{what} claims {length} bytes; at most {most} are read")

    def _fault(self, text: str) -> NoReturn:
        raise GgufError(f"{self._file} is not a whole GGUF file: {text}")
