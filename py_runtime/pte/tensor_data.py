"""A `.ptd` file (`FT01`): data by key, for programs that were exported without theirs."""

import struct

from py_runtime.pte.container import MAX_PROGRAM_BYTES, read_named, read_segments
from py_runtime.pte.errors import PteError
from py_runtime.pte.flatbuffer import Budget, FlatBuffer
from py_runtime.pte.schema import TensorDataSlot
from py_runtime.weights.byte_source import ByteSource
from py_runtime.weights.ranges import StoredRange

HEADER = struct.Struct("<4x4s4sIQQQ")  # FT01, FH01, length, flatbuffer at, its size, segments at


async def read_tensor_data(source: ByteSource) -> dict[str, StoredRange]:
    """Return where each key's data lies; none of it is read."""
    file, size = source.name, await source.size()
    head = await source.read(0, min(size, HEADER.size))
    if head[4:8] != b"FT01" or head[8:12] != b"FH01" or len(head) < HEADER.size:
        raise PteError(f"{file} is not a .ptd file: it begins with {head[4:12]!r}, not b'FT01FH01'")
    _, _, length, begin, flatbuffer_size, segment_base = HEADER.unpack(head)
    end = begin + flatbuffer_size
    if length < HEADER.size - 8 or not HEADER.size <= end <= min(size, MAX_PROGRAM_BYTES):
        raise PteError(f"{file} is damaged: its header says that its table ends at {end} of {size}")
    budget = Budget(file, size)
    budget.read(end)
    buffer = FlatBuffer(await source.read(0, end), b"FT01", file, budget)
    root = buffer.root()
    segments = read_segments(buffer, root.tables(TensorDataSlot.SEGMENTS), segment_base, size)
    named = read_named(buffer, root.tables(TensorDataSlot.NAMED_DATA), segments)
    return {
        key: StoredRange(source, segment.offset, segment.size) for key, segment in named.items()
    }
