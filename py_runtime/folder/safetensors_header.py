"""The header of a safetensors file, read without trust: the places of the tensors' bytes.

A file is 8 bytes (the header's length), a JSON header padded with spaces, and the data. Two calls
suit a page that fetches ranges: `header_end` of the first 8 bytes says how much to fetch, and
`parse_safetensors_header` reads that much. docs/blob.md says what is asked beyond safetensors.
"""

import re
from dataclasses import dataclass
from typing import Any

from py_runtime.base.dtypes import BOOL, F16, F32, I8, I32, I64, U8, DType
from py_runtime.base.model_errors import TensorHeaderError, TensorLayoutError
from py_runtime.base.shapes import MAX_ELEMENTS, Dims, numel
from py_runtime.base.short_texts import short
from py_runtime.folder.strict_json import is_count, parse_strict_json
from py_runtime.program import MAX_RANK

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 16 << 20  # a header of a thousand tensors takes about 130 kB
ALIGNMENT = 16  # where tensors begin, in the file as in the data
PAD_PREFIX = "__pad_"
PAD_NAME = re.compile(rf"{PAD_PREFIX}[0-9]+")
METADATA = "__metadata__"
ENTRY_KEYS = {"dtype", "shape", "data_offsets"}
DTYPE_OF_CODE = {"F32": F32, "F16": F16, "I32": I32, "I64": I64, "U8": U8, "I8": I8, "BOOL": BOOL}
CODE_OF_DTYPE = {dtype: code for code, dtype in DTYPE_OF_CODE.items()}


@dataclass(frozen=True)
class TensorEntry:
    """A tensor of the file, before its data is read."""

    name: str
    dtype: DType  # one element takes dtype.host.itemsize bytes
    dims: Dims
    offset: int  # from the file's first byte
    nbytes: int


def header_end(file: str, start: bytes, file_size: int) -> int:
    """Return how many bytes from the file's start hold the header; `start` has 8 or more."""
    if file_size < LENGTH_BYTES or len(start) < LENGTH_BYTES:
        size = min(file_size, len(start))
        raise TensorHeaderError(f"{file} has {size} bytes; a safetensors file has at least 8")
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise TensorHeaderError(
            f"{file} says its header takes {length} bytes; at most {MAX_HEADER_BYTES} are read"
        )
    end = LENGTH_BYTES + length
    if end > file_size:
        raise TensorHeaderError(
            f"{file} has {file_size} bytes, but its header alone would end at byte {end}"
        )
    if end % ALIGNMENT:
        raise TensorLayoutError(
            f"{file}: the data begins at byte {end}, which is not a multiple of {ALIGNMENT}"
        )
    return end


def parse_safetensors_header(file: str, start: bytes, file_size: int) -> list[TensorEntry]:
    """Return the tensors in file order without padding; `start` holds the whole header."""
    end = header_end(file, start, file_size)
    if len(start) < end:
        raise TensorHeaderError(f"{file}: {len(start)} of its header's {end} bytes are here")
    members = _parse_members(file, start[LENGTH_BYTES:end])
    _check_metadata(file, members.pop(METADATA, {}))
    entries = []
    position = 0  # within the data
    for name, facts in members.items():
        entry = _parse_entry(file, name, facts, end)
        _check_range(file, entry, entry.offset - end, position, file_size - end)
        position = entry.offset - end + entry.nbytes
        if PAD_NAME.fullmatch(name):
            _check_padding(file, entry)
        else:
            _check_alignment(file, entry)
            entries.append(entry)
    if end + position != file_size:
        raise TensorLayoutError(
            f"{file}: the tensors end at byte {end + position}, but the file at {file_size}"
        )
    if position % ALIGNMENT:
        raise TensorLayoutError(
            f"{file}: the data takes {position} bytes, which is not a multiple of {ALIGNMENT}"
        )
    return entries


def _parse_members(file: str, header: bytes) -> dict[str, Any]:
    if header[:1] != b"{":
        raise TensorHeaderError(f"{file}: the header begins with {header[:1]!r}, not with '{{'")
    try:
        members: dict[str, Any] = parse_strict_json(header)
    except ValueError as error:
        raise TensorHeaderError(f"{file}: the header is not JSON: {error}") from None
    return members


def _check_metadata(file: str, metadata: Any) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise TensorHeaderError(f"{file}: {METADATA} must be an object of strings")


def _parse_entry(file: str, name: str, facts: Any, data_start: int) -> TensorEntry:
    where = f"{file}: tensor {short(name)}"
    if not name:
        raise TensorHeaderError(f"{file} has a tensor without a name")
    if not isinstance(facts, dict) or facts.keys() != ENTRY_KEYS:
        raise TensorHeaderError(f"{where} must have dtype, shape and data_offsets, nothing else")
    code, shape, offsets = facts["dtype"], facts["shape"], facts["data_offsets"]
    if not isinstance(code, str) or code not in DTYPE_OF_CODE:
        known = ", ".join(DTYPE_OF_CODE)
        raise TensorHeaderError(f"{where} has the unknown dtype {short(code)}; known: {known}")
    if not isinstance(shape, list) or len(shape) > MAX_RANK or not all(map(is_count, shape)):
        raise TensorHeaderError(
            f"{where} has the shape {short(shape)}; it must be a list of at most {MAX_RANK} sizes"
        )
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_count, offsets)):
        raise TensorHeaderError(
            f"{where} has the data_offsets {short(offsets)}; they must be a begin and an end"
        )
    # Sizes of 0 do not hide others that no array could have.
    if numel(size or 1 for size in shape) > MAX_ELEMENTS:
        raise TensorHeaderError(
            f"{where} has the shape {short(shape)}; at most {MAX_ELEMENTS} elements can be indexed"
        )
    begin, end = offsets
    wanted = numel(shape) * DTYPE_OF_CODE[code].host.itemsize
    if end - begin != wanted:
        raise TensorLayoutError(
            f"{where} is {code} {shape}, which takes {wanted} bytes, but its data_offsets span "
            f"{end - begin}"
        )
    return TensorEntry(name, DTYPE_OF_CODE[code], tuple(shape), data_start + begin, wanted)


def _check_range(file: str, entry: TensorEntry, begin: int, position: int, available: int) -> None:
    where = f"{file}: tensor {short(entry.name)}"
    if begin + entry.nbytes > available:
        raise TensorLayoutError(
            f"{where} ends at byte {begin + entry.nbytes} of the data, which has {available}"
        )
    if begin != position:
        fault = "leaves a hole" if begin > position else "overlaps the tensor before it"
        raise TensorLayoutError(
            f"{where} begins at byte {begin} of the data and {fault}: it must begin at {position}"
        )


def _check_padding(file: str, entry: TensorEntry) -> None:
    if entry.dtype is not U8 or len(entry.dims) != 1 or not 0 < entry.nbytes < ALIGNMENT:
        raise TensorLayoutError(
            f"{file}: {short(entry.name)} is {CODE_OF_DTYPE[entry.dtype]} {list(entry.dims)}; "
            f"padding is U8, of 1 to {ALIGNMENT - 1} bytes"
        )


def _check_alignment(file: str, entry: TensorEntry) -> None:
    if entry.offset % ALIGNMENT:
        raise TensorLayoutError(
            f"{file}: tensor {short(entry.name)} begins at byte {entry.offset} of the file, which "
            f"is not a multiple of {ALIGNMENT}"
        )
