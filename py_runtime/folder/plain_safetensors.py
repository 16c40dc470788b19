"""Safetensors files as anyone writes them: read without trust, small ones whole, and written.

Model folders have stricter ones, which stream: py_runtime/folder/safetensors_header.py.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from py_runtime.base.model_errors import TensorHeaderError, TensorLayoutError
from py_runtime.base.shapes import MAX_ELEMENTS, numel, round_up
from py_runtime.base.short_texts import short
from py_runtime.folder.safetensors_header import (
    ENTRY_KEYS,
    LENGTH_BYTES,
    MAX_HEADER_BYTES,
    METADATA,
)
from py_runtime.folder.strict_json import is_count, parse_strict_json
from py_runtime.program import MAX_RANK

FLOATS: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "F64": np.dtype("<f8"),
}
BF16 = "BF16"
ITEM_BYTES = {
    **{code: dtype.itemsize for code, dtype in FLOATS.items()},
    **{BF16: 2, "I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2},
    **{"I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1},
}
UNIT = 8  # a header ends at a multiple of so many bytes


@dataclass(frozen=True)
class Stored:
    """A tensor's place in the file's bytes."""

    code: str
    dims: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class PlainTensors:
    """A file's tensors, converted to floats as they are asked for."""

    file: str
    data: bytes
    stored: Mapping[str, Stored]
    metadata: Mapping[str, str] = field(default_factory=dict)

    def floats(self, name: str) -> np.ndarray:
        """Return a tensor of floats, f32 or f16; it shares the file's memory where it can."""
        entry = self.stored[name]
        raw = np.frombuffer(self.data, np.uint8)[entry.begin : entry.end]
        return as_floats(self.file, name, entry.code, raw).reshape(entry.dims)


def as_floats(file: str, name: str, code: str, raw: np.ndarray) -> np.ndarray:
    """Return bytes of a tensor as finite floats, f32 or f16, in one row."""
    if code == BF16:
        values = (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    elif code in FLOATS:
        values = raw.view(FLOATS[code]) if len(raw) else np.zeros(0, np.float32)
        values = values.astype(np.float32) if code == "F64" else values
    else:
        raise TensorHeaderError(
            f"{file}: {short(name)} is {code}, not one of {', '.join(FLOATS)}, {BF16}",
            "get the file in one of these",
        )
    if not np.isfinite(values).all():
        raise TensorHeaderError(
            f"{file}: {short(name)} has values that are infinite or not numbers"
        )
    return values


def read_safetensors(file: str, data: bytes) -> PlainTensors:
    """Read the whole file; what the safetensors format forbids is refused."""
    end = header_end(file, data[:LENGTH_BYTES], len(data))
    stored, metadata = parse_header(file, data[:end], len(data))
    return PlainTensors(file, data, stored, metadata)


def header_end(file: str, start: bytes, size: int) -> int:
    """Return how many of a file's bytes are its header, from the first ones."""
    if size < LENGTH_BYTES or len(start) < LENGTH_BYTES:
        raise TensorHeaderError(f"{file} has {size} bytes; a safetensors file has at least 8")
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES or LENGTH_BYTES + length > size:
        raise TensorHeaderError(f"{file} is not a safetensors file: its header would not fit in it")
    return LENGTH_BYTES + length


def parse_header(
    file: str, header: bytes, size: int
) -> tuple[dict[str, Stored], Mapping[str, str]]:
    """Return the tensors' places and the metadata of a file of this size, whose header is here."""
    try:
        members = parse_strict_json(header[LENGTH_BYTES:])
    except ValueError as error:
        raise TensorHeaderError(f"{file}: the header is not JSON: {error}") from None
    if not isinstance(members, dict):
        raise TensorHeaderError(f"{file}: the header is not an object")
    metadata = members.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise TensorHeaderError(f"{file}: {METADATA} must be an object of strings")
    start = len(header)
    stored = {name: _entry(file, name, facts, start) for name, facts in members.items()}
    position = start
    for name, entry in sorted(stored.items(), key=lambda each: (each[1].begin, each[1].end)):
        if entry.begin != position:
            raise TensorLayoutError(f"{file}: {short(name)} leaves a hole or overlaps another")
        position = entry.end
    if position != size:
        raise TensorLayoutError(f"{file}: its tensors end at byte {position}, the file at {size}")
    return stored, metadata


def _entry(file: str, name: str, facts: Any, start: int) -> Stored:
    where = f"{file}: {short(name)}"
    if not isinstance(facts, dict) or facts.keys() != ENTRY_KEYS:
        raise TensorHeaderError(f"{where} must have dtype, shape and data_offsets, nothing else")
    code, dims, offsets = facts["dtype"], facts["shape"], facts["data_offsets"]
    if not isinstance(code, str) or code not in ITEM_BYTES:
        raise TensorHeaderError(f"{where} has the unknown dtype {short(code)}")
    are_dims = isinstance(dims, list) and len(dims) <= MAX_RANK and all(map(is_count, dims))
    if not are_dims or numel(size or 1 for size in dims) > MAX_ELEMENTS:
        raise TensorHeaderError(f"{where} has the shape {short(dims)}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_count, offsets)):
        raise TensorHeaderError(f"{where} has the data_offsets {short(offsets)}")
    begin, end = offsets
    if end - begin != numel(dims) * ITEM_BYTES[code]:
        raise TensorLayoutError(f"{where} is {code} {dims}, but spans {end - begin} bytes")
    return Stored(code, tuple(dims), start + begin, start + end)


def write_safetensors(
    tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> bytes:
    """Return a file with these tensors in f32."""
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    blocks: list[bytes] = []
    place = 0
    for name, given in tensors.items():
        block = np.ascontiguousarray(given, "<f4").tobytes()
        offsets = [place, place + len(block)]
        header[name] = {"dtype": "F32", "shape": list(given.shape), "data_offsets": offsets}
        place += len(block)
        blocks.append(block)
    text = json.dumps(header).encode()
    text += b" " * (round_up(LENGTH_BYTES + len(text), UNIT) - LENGTH_BYTES - len(text))
    return b"".join([len(text).to_bytes(LENGTH_BYTES, "little"), text, *blocks])
