"""A plan of where each tensor's bytes go: safetensors files of limited size, tensors aligned.

It needs dtypes and dims alone, and is made before any data is there.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import lcm

from export.errors import ExportError
from py_runtime.base.dtypes import U8, DType
from py_runtime.base.shapes import Dims, numel
from py_runtime.folder.layout import PIECE_MARK
from py_runtime.folder.safetensors_header import ALIGNMENT, CODE_OF_DTYPE, LENGTH_BYTES, PAD_PREFIX

# More than an entry and the padding after it can take in the header, their names left out.
ENTRY_ROOM = 300


@dataclass(frozen=True)
class StoredTensor:
    """A tensor as files hold it: row-major, in its host dtype."""

    name: str
    dtype: DType
    dims: Dims

    @property
    def nbytes(self) -> int:
        return numel(self.dims) * self.dtype.host.itemsize


@dataclass(frozen=True)
class Span:
    """A range of a tensor's row-major bytes, and the zeros to write after it."""

    tensor: str
    begin: int
    end: int
    padding: int


@dataclass(frozen=True)
class FilePlan:
    """A weight file before its data is there."""

    header: bytes  # with its length before it and the spaces after it
    spans: tuple[Span, ...]

    @property
    def size(self) -> int:
        return len(self.header) + sum(s.end - s.begin + s.padding for s in self.spans)


def plan_file(tensors: Iterable[StoredTensor]) -> FilePlan:
    """Plan one file, however large."""
    file = _OpenFile()
    for tensor in tensors:
        file.add(tensor.name, tensor, tensor.dims, 0, tensor.nbytes)
    return file.close()


def plan_shards(tensors: Iterable[StoredTensor], shard_size: int) -> list[FilePlan]:
    """Files of at most `shard_size` bytes, in order; what fits no file is cut into pieces."""
    done: list[FilePlan] = []
    shard = _OpenFile()
    for tensor in tensors:
        if shard.spans and tensor.nbytes > shard.room(tensor.name, shard_size):
            done.append(shard.close())
            shard = _OpenFile()
        if tensor.nbytes <= shard.room(tensor.name, shard_size):
            shard.add(tensor.name, tensor, tensor.dims, 0, tensor.nbytes)
            continue
        for number, (dims, begin, end) in enumerate(_cut(tensor, shard_size)):
            if shard.spans:
                done.append(shard.close())
                shard = _OpenFile()
            shard.add(f"{tensor.name}{PIECE_MARK}{number}", tensor, dims, begin, end)
    return [*done, shard.close()] if shard.spans else done


def _cut(tensor: StoredTensor, shard_size: int) -> Iterator[tuple[Dims, int, int]]:
    """Pieces (dims, begin, end): whole rows where a row fits a file, else flat runs of elements."""
    itemsize = tensor.dtype.host.itemsize
    rows, inner = (tensor.dims or (1,))[0], tensor.dims[1:]
    row_bytes = numel(inner) * itemsize
    longest_name = f"{tensor.name}{PIECE_MARK}999999"
    room = _OpenFile().room(longest_name, shard_size)
    unit = lcm(row_bytes, ALIGNMENT)  # pieces but the last are aligned in the GPU's buffer, too
    if unit > room:
        rows, inner, row_bytes, unit = numel(tensor.dims), (), itemsize, ALIGNMENT
    if unit > room:
        raise ExportError(
            f"shards of {shard_size} bytes have no room for the tensor '{tensor.name}'; choose a "
            "larger --shard-size"
        )
    step = room // unit * unit // row_bytes
    for first in range(0, rows, step):
        last = min(first + step, rows)
        yield (last - first, *inner), first * row_bytes, last * row_bytes


class _OpenFile:
    """A file that still takes tensors."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._entries: dict[str, dict[str, object]] = {}
        self._header_room = LENGTH_BYTES + ALIGNMENT + len("{}")
        self._data_size = 0

    def room(self, name: str, file_size: int) -> int:
        """Return how many bytes a tensor of this name may have, padding included."""
        free = file_size - self._header_room - self._entry_room(name) - self._data_size
        return free // ALIGNMENT * ALIGNMENT

    def add(self, name: str, tensor: StoredTensor, dims: Dims, begin: int, end: int) -> None:
        padding = -(end - begin) % ALIGNMENT
        self._enter(name, tensor.dtype, dims, end - begin)
        if padding:
            self._enter(f"{PAD_PREFIX}{len(self.spans)}", U8, (padding,), padding)
        self.spans.append(Span(tensor.name, begin, end, padding))
        self._header_room += self._entry_room(name)

    def close(self) -> FilePlan:
        text = json.dumps(self._entries, separators=(",", ":")).encode()
        text += b" " * (-(LENGTH_BYTES + len(text)) % ALIGNMENT)
        return FilePlan(len(text).to_bytes(LENGTH_BYTES, "little") + text, tuple(self.spans))

    def _enter(self, name: str, dtype: DType, dims: Dims, nbytes: int) -> None:
        begin, self._data_size = self._data_size, self._data_size + nbytes
        self._entries[name] = {
            "dtype": CODE_OF_DTYPE[dtype],
            "shape": list(dims),
            "data_offsets": [begin, self._data_size],
        }

    def _entry_room(self, name: str) -> int:
        return len(json.dumps(name)) + ENTRY_ROOM
