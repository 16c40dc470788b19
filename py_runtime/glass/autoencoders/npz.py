"""The arrays of an .npz file, read without trust: only where in the file the numbers of each lie.

Nothing is unpacked or unpickled: arrays stand in such files as they are in memory, unless they were
written by numpy.savez_compressed. So a small file cannot become a large one.
"""

import io
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.messages import message
from py_runtime.base.model_errors import TensorHeaderError, TensorLayoutError
from py_runtime.base.shapes import MAX_ELEMENTS, numel
from py_runtime.base.short_texts import short
from py_runtime.folder.plain_safetensors import FLOATS, Stored
from py_runtime.glass.autoencoders.errors import AutoencoderError
from py_runtime.program import MAX_RANK
from py_runtime.weights.byte_source import ByteSource

NPZ, NPY = ".npz", ".npy"
END = struct.Struct("<4s4H2LH")  # of the central directory
MEMBER = struct.Struct("<4s6H3L5H2L")  # an entry of it
LOCAL = struct.Struct("<4s5H3L2H")  # before a member's bytes
END_64 = struct.Struct("<4sQ2H2L4Q")
FINDER_64 = struct.Struct("<4sLQL")  # which says where that is
SIZES_64 = 1  # the extra field with sizes of more than 32 bits
FULL = 0xFFFFFFFF
MAX_COMMENT, MAX_DIRECTORY, MAX_NPY_HEADER = 0xFFFF, 1 << 20, 10_000
CODES = {dtype: code for code, dtype in FLOATS.items()}


@dataclass(frozen=True)
class Member:
    """A file in the archive."""

    name: str
    method: int  # 0: its bytes stand there as they are
    nbytes: int
    at: int  # of what stands before its bytes


async def arrays_of(source: ByteSource) -> dict[str, Stored]:
    """Return the place of each array in the file; ModelError says what is wrong with it."""
    found: dict[str, Stored] = {}
    size = await source.size()
    for member in await _members(source, size):
        if not member.name.endswith(NPY):
            continue
        name = member.name.removesuffix(NPY)
        if name in found:
            raise TensorLayoutError(f"{source.name}: {short(name)} is there twice")
        found[name] = await _array(source, size, name, member)
    return found


async def _members(source: ByteSource, size: int) -> list[Member]:
    tail = min(size, END.size + MAX_COMMENT)
    last = await source.read(size - tail, tail)
    at = last.rfind(b"PK\x05\x06")
    if at < 0 or len(last) - at < END.size:
        raise TensorHeaderError(f"{source.name} is not an {NPZ} file: it has no directory")
    _, _, _, _, count, nbytes, begin, _ = END.unpack_from(last, at)
    if FULL in (nbytes, begin):
        count, nbytes, begin = await _directory_64(source, size - tail + at, size)
    if nbytes > MAX_DIRECTORY or begin + nbytes > size:
        raise TensorHeaderError(f"{source.name}: its directory would not fit in it")
    directory, place, members = await source.read(begin, nbytes), 0, []
    for _ in range(count):
        if place + MEMBER.size > len(directory):
            raise TensorHeaderError(f"{source.name}: its directory ends too early")
        fields = MEMBER.unpack_from(directory, place)
        sign, method, packed, whole = fields[0], fields[4], fields[8], fields[9]
        name, extra, comment, local = fields[10], fields[11], fields[12], fields[16]
        if sign != b"PK\x01\x02":
            raise TensorHeaderError(f"{source.name}: its directory is damaged")
        place += MEMBER.size
        text = directory[place : place + name].decode("utf-8", "replace")
        more = directory[place + name : place + name + extra]
        place += name + extra + comment
        whole, packed, local = _wide(more, [whole, packed, local])
        members.append(Member(text, method if packed == whole else -1, whole, local))
    return members


async def _directory_64(source: ByteSource, end: int, size: int) -> tuple[int, int, int]:
    """Return (entries, bytes, first byte) of the directory of a file of more than 4 GB."""
    fault = TensorHeaderError(f"{source.name}: its directory is damaged")
    if end < FINDER_64.size:
        raise fault
    finder = await source.read(end - FINDER_64.size, FINDER_64.size)
    sign, _, at, _ = FINDER_64.unpack(finder)
    if sign != b"PK\x06\x07" or at + END_64.size > size:
        raise fault
    *_, count, nbytes, begin = END_64.unpack(await source.read(at, END_64.size))
    return count, nbytes, begin


def _wide(extra: bytes, values: list[int]) -> list[int]:
    """Return sizes and a place, those of more than 32 bits from the extra field."""
    place = 0
    while place + 4 <= len(extra):
        kind, nbytes = struct.unpack_from("<2H", extra, place)
        wide = extra[place + 4 : place + 4 + nbytes]
        place += 4 + nbytes
        if kind == SIZES_64:
            numbers = iter(struct.unpack(f"<{len(wide) // 8}Q", wide[: len(wide) // 8 * 8]))
            return [next(numbers, value) if value == FULL else value for value in values]
    return values


async def _array(source: ByteSource, size: int, name: str, member: Member) -> Stored:
    where = f"{source.name}: {short(name)}"
    if member.method != 0:
        raise AutoencoderError(
            message("autoencoder_compressed", file=source.name, tensor=short(name))
        )
    if member.at + LOCAL.size + member.nbytes > size:
        raise TensorLayoutError(f"{where} would not fit in the file")
    before = LOCAL.unpack(await source.read(member.at, LOCAL.size))
    begin = member.at + LOCAL.size + before[9] + before[10]
    end = begin + member.nbytes
    if before[0] != b"PK\x03\x04" or end > size:
        raise TensorLayoutError(f"{where} is not where the directory says")
    start = await source.read(begin, min(member.nbytes, MAX_NPY_HEADER))
    dims, are_columns, dtype, header = _npy_header(where, start)
    if dtype not in CODES or (are_columns and len(dims) > 1):
        raise AutoencoderError(message("autoencoder_array", file=source.name, tensor=short(name)))
    if numel(dims) * dtype.itemsize != member.nbytes - header:
        raise TensorLayoutError(f"{where} is {list(dims)}, but has {member.nbytes - header} bytes")
    return Stored(CODES[dtype], dims, begin + header, end)


def _npy_header(where: str, start: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return dims, whether columns come first, dtype, and the bytes before the numbers."""
    given = io.BytesIO(start)
    try:
        version = np.lib.format.read_magic(given)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        dims, are_columns, dtype = read(given, max_header_size=MAX_NPY_HEADER)
    except Exception as error:  # numpy lets through what its parser of Python meets
        raise TensorHeaderError(f"{where} has no header that numpy can read") from error
    are_dims = len(dims) <= MAX_RANK and numel(max(size, 1) for size in dims) <= MAX_ELEMENTS
    if not are_dims or any(size < 0 for size in dims):
        raise TensorHeaderError(f"{where} has the shape {short(list(dims))}")
    return dims, are_columns, dtype, given.tell()
