"""GGUF files written by hand: sound ones, and ones that lie."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.gguf.tensor_types import BY_NAME

U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64 = range(13)
FORMS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f"}
FORMS |= {BOOL: "B", U64: "Q", I64: "q", F64: "d"}


@dataclass(frozen=True)
class Typed:
    """A value of a type that its Python value does not tell."""

    kind: int
    value: Any  # a list makes an array; bytes are taken as they are


@dataclass(frozen=True)
class Tensor:
    name: str
    dims: tuple[int, ...]  # outermost first
    kind: str
    data: bytes

    @classmethod
    def floats(cls, name: str, values: np.ndarray) -> "Tensor":
        return cls(name, values.shape, "F32", np.ascontiguousarray(values, np.float32).tobytes())


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pack_value(kind: int, value: Any) -> bytes:
    return text(value) if kind == TEXT else struct.pack(f"<{FORMS[kind]}", value)


def with_type(value: Any) -> Typed:
    """Give a value the type that llama.cpp's converters write."""
    if isinstance(value, Typed):
        return value
    kinds = {bool: BOOL, int: U32, float: F32, str: TEXT, bytes: TEXT}
    first = value[0] if isinstance(value, list) else value
    kind = kinds[type(first)]
    return Typed(I32 if isinstance(value, list) and kind == U32 else kind, value)


def entry(key: str | bytes, value: Any) -> bytes:
    found = with_type(value)
    if not isinstance(found.value, list):
        return text(key) + struct.pack("<I", found.kind) + pack_value(found.kind, found.value)
    items = b"".join(pack_value(found.kind, item) for item in found.value)
    head = struct.pack("<IIQ", ARRAY, found.kind, len(found.value))
    return text(key) + head + items


def tensor_info(tensor: Tensor, offset: int, number: int | None = None) -> bytes:
    dims = struct.pack(f"<I{len(tensor.dims)}Q", len(tensor.dims), *reversed(tensor.dims))
    kind = BY_NAME[tensor.kind].number if number is None else number
    return text(tensor.name) + dims + struct.pack("<IQ", kind, offset)


def start(tensors: int, entries: int, version: int = 3) -> bytes:
    return struct.pack("<4sIQQ", b"GGUF", version, tensors, entries)


def pad(data: bytes, alignment: int) -> bytes:
    return data + bytes(-len(data) % alignment)


def file(
    entries: Mapping[str, Any],
    tensors: Sequence[Tensor] = (),
    version: int = 3,
    alignment: int = 32,
) -> bytes:
    header = start(len(tensors), len(entries), version)
    header += b"".join(entry(key, value) for key, value in entries.items())
    data = b""
    for tensor in tensors:
        header += tensor_info(tensor, len(data))
        data += pad(tensor.data, alignment)
    return pad(header, alignment) + data
