"""Safetensors headers that lie, as raw bytes: each fault has its own text."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import BOOL, F16, F32, I8, I32, I64, U8
from py_runtime.base.model_errors import DAMAGED, ModelError, TensorHeaderError, TensorLayoutError
from py_runtime.folder.safetensors_header import (
    MAX_HEADER_BYTES,
    TensorEntry,
    header_end,
    parse_safetensors_header,
)
from tests.folder.small_model import safetensors_bytes


def entry(dtype: Any, shape: Any, begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def file_of(data_size: int = 16, **tensors: Any) -> bytes:
    return safetensors_bytes(tensors, bytes(data_size))


def lengthy(length: int, rest: bytes = b"") -> bytes:
    return length.to_bytes(8, "little") + rest


HONEST = entry("F32", [4], 0, 16)
HEADER_FAULTS = {
    "empty": (b"", "w has 0 bytes; a safetensors file has at least 8"),
    "no length": (b"1234567", "w has 7 bytes; a safetensors file has at least 8"),
    "cap": (
        lengthy(MAX_HEADER_BYTES + 8),
        "w says its header takes 16777224 bytes; at most 16777216 are read",
    ),
    "largest length": (
        b"\xff" * 8,
        "w says its header takes 18446744073709551615 bytes; at most 16777216 are read",
    ),
    "truncated": (
        lengthy(40, b"{}"),
        "w has 10 bytes, but its header alone would end at byte 48",
    ),
    "start": (safetensors_bytes(b" {}"), "w: the header begins with b' ', not with '{'"),
    "a list": (safetensors_bytes(b"[]"), "w: the header begins with b'[', not with '{'"),
    "no header": (lengthy(8, b"\0" * 8), "w: the header begins with b'\\x00', not with '{'"),
    "UTF-8": (safetensors_bytes(b'{"\xff"'), "w: the header is not JSON: byte 2 is not UTF-8"),
    "JSON": (
        safetensors_bytes(b'{"a":1'),
        "w: the header is not JSON: Expecting ',' delimiter: line 1 column 9 (char 8)",
    ),
    "two documents": (
        safetensors_bytes(b"{}{}"),
        "w: the header is not JSON: Extra data: line 1 column 3 (char 2)",
    ),
    "depth": (
        safetensors_bytes(b'{"a":' + b"[" * 100_000),
        "w: the header is not JSON: it is nested too deeply",
    ),
    "double key": (
        safetensors_bytes(b'{"a":{},"a":{}}'),
        "w: the header is not JSON: the key 'a' appears twice in one object",
    ),
    "NaN": (safetensors_bytes(b'{"a":NaN}'), "w: the header is not JSON: NaN is not a JSON number"),
    "Infinity": (
        safetensors_bytes(b'{"a":-Infinity}'),
        "w: the header is not JSON: -Infinity is not a JSON number",
    ),
    "-0": (
        safetensors_bytes(
            b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[-0,16]}}', data=bytes(16)
        ),
        "w: tensor 'a' has the data_offsets [-0.0, 16]; they must be a begin and an end",
    ),
    "metadata": (
        file_of(__metadata__={"format": 1}),
        "w: __metadata__ must be an object of strings",
    ),
    "no name": (
        safetensors_bytes({"": HONEST}, bytes(16)),
        "w has a tensor without a name",
    ),
    "no object": (
        file_of(a=[]),
        "w: tensor 'a' must have dtype, shape and data_offsets, nothing else",
    ),
    "no shape": (
        file_of(a={"dtype": "F32", "data_offsets": [0, 16]}),
        "w: tensor 'a' must have dtype, shape and data_offsets, nothing else",
    ),
    "one more key": (
        file_of(a={**HONEST, "file": "b"}),
        "w: tensor 'a' must have dtype, shape and data_offsets, nothing else",
    ),
    "unknown dtype": (
        file_of(a=entry("F8", [16], 0, 16)),
        "w: tensor 'a' has the unknown dtype 'F8'; known: F32, F16, I32, I64, U8, I8, BOOL",
    ),
    "dtype no text": (
        file_of(a=entry(["F32"], [4], 0, 16)),
        "w: tensor 'a' has the unknown dtype ['F32']; known: F32, F16, I32, I64, U8, I8, BOOL",
    ),
    "shape no list": (
        file_of(a=entry("F32", 4, 0, 16)),
        "w: tensor 'a' has the shape 4; it must be a list of at most 8 sizes",
    ),
    "rank": (
        file_of(a=entry("F32", [1] * 9, 0, 4)),
        "w: tensor 'a' has the shape [1, 1, 1, 1, 1, 1, 1, 1, 1]; it must be a list of at most 8 "
        "sizes",
    ),
    "negative size": (
        file_of(a=entry("F32", [-2, -2], 0, 16)),
        "w: tensor 'a' has the shape [-2, -2]; it must be a list of at most 8 sizes",
    ),
    "boolean size": (
        file_of(a=entry("U8", [True], 0, 1)),
        "w: tensor 'a' has the shape [True]; it must be a list of at most 8 sizes",
    ),
    "float size": (
        file_of(a=entry("F32", [4.0], 0, 16)),
        "w: tensor 'a' has the shape [4.0]; it must be a list of at most 8 sizes",
    ),
    "product": (
        file_of(a=entry("U8", [2**32, 2**32], 0, 0)),
        "w: tensor 'a' has the shape [4294967296, 4294967296]; at most 2147483647 elements can be "
        "indexed",
    ),
    "product behind a zero": (
        file_of(a=entry("U8", [0, 2**31, 2], 0, 0)),
        "w: tensor 'a' has the shape [0, 2147483648, 2]; at most 2147483647 elements can be "
        "indexed",
    ),
    "three offsets": (
        file_of(a={**HONEST, "data_offsets": [0, 16, 16]}),
        "w: tensor 'a' has the data_offsets [0, 16, 16]; they must be a begin and an end",
    ),
    "negative offset": (
        file_of(a=entry("F32", [4], -16, 0)),
        "w: tensor 'a' has the data_offsets [-16, 0]; they must be a begin and an end",
    ),
    "offset past 2^53": (
        file_of(a=entry("F32", [4], 2**53 - 16, 2**53)),
        "w: tensor 'a' has the data_offsets [9007199254740976, 9007199254740992]; they must be a "
        "begin and an end",
    ),
    "long name": (
        file_of(**{"n" * 200: 1}),
        f"w: tensor '{'n' * 76}... must have dtype, shape and data_offsets, nothing else",
    ),
}
LAYOUT_FAULTS = {
    "header's length": (
        lengthy(4, b"{}  ") + bytes(16),
        "w: the data begins at byte 12, which is not a multiple of 16",
    ),
    "bytes of shape": (
        file_of(a=entry("F32", [3], 0, 16)),
        "w: tensor 'a' is F32 [3], which takes 12 bytes, but its data_offsets span 16",
    ),
    "backwards": (
        file_of(a=entry("F32", [4], 16, 0)),
        "w: tensor 'a' is F32 [4], which takes 16 bytes, but its data_offsets span -16",
    ),
    "past the end": (
        file_of(a=entry("F32", [8], 0, 32)),
        "w: tensor 'a' ends at byte 32 of the data, which has 16",
    ),
    "hole at the start": (
        file_of(32, a=entry("F32", [4], 16, 32)),
        "w: tensor 'a' begins at byte 16 of the data and leaves a hole: it must begin at 0",
    ),
    "hole": (
        file_of(48, a=HONEST, b=entry("F32", [4], 32, 48)),
        "w: tensor 'b' begins at byte 32 of the data and leaves a hole: it must begin at 16",
    ),
    "overlap": (
        file_of(32, a=entry("F32", [8], 0, 32), b=entry("F32", [4], 16, 32)),
        "w: tensor 'b' begins at byte 16 of the data and overlaps the tensor before it: it must "
        "begin at 32",
    ),
    "the same bytes twice": (
        file_of(16, a=HONEST, b=HONEST),
        "w: tensor 'b' begins at byte 0 of the data and overlaps the tensor before it: it must "
        "begin at 16",
    ),
    "out of order": (
        file_of(32, b=entry("F32", [4], 16, 32), a=HONEST),
        "w: tensor 'b' begins at byte 16 of the data and leaves a hole: it must begin at 0",
    ),
    "unaligned tensor": (
        file_of(a=entry("F32", [1], 0, 4), b=entry("F32", [3], 4, 16)),
        "w: tensor 'b' begins at byte 148 of the file, which is not a multiple of 16",
    ),
    "bytes left over": (
        file_of(32, a=HONEST),
        "w: the tensors end at byte 96, but the file at 112",
    ),
    "no tensors, but data": (
        safetensors_bytes({}, bytes(16)),
        "w: the tensors end at byte 16, but the file at 32",
    ),
    "unaligned end": (
        file_of(20, a=entry("F32", [5], 0, 20)),
        "w: the data takes 20 bytes, which is not a multiple of 16",
    ),
    "padding of 16 bytes": (
        file_of(__pad_0=entry("U8", [16], 0, 16)),
        "w: '__pad_0' is U8 [16]; padding is U8, of 1 to 15 bytes",
    ),
    "padding of floats": (
        file_of(__pad_0=entry("F32", [2], 0, 8)),
        "w: '__pad_0' is F32 [2]; padding is U8, of 1 to 15 bytes",
    ),
}


@pytest.mark.parametrize("case", HEADER_FAULTS)
def test_a_header_fault(case: str) -> None:
    check_fault(*HEADER_FAULTS[case], TensorHeaderError)


@pytest.mark.parametrize("case", LAYOUT_FAULTS)
def test_a_layout_fault(case: str) -> None:
    check_fault(*LAYOUT_FAULTS[case], TensorLayoutError)


def check_fault(data: bytes, text: str, kind: type[ModelError]) -> None:
    with pytest.raises(ModelError) as caught:
        parse_safetensors_header("w", data, len(data))
    assert (type(caught.value), str(caught.value)) == (kind, f"{text}; {DAMAGED}")


def test_a_header_that_did_not_arrive_whole() -> None:
    data = file_of(a=HONEST)
    end = header_end("w", data[:8], len(data))
    with pytest.raises(TensorHeaderError, match=f"^w: {end - 1} of its header's {end} bytes are h"):
        parse_safetensors_header("w", data[: end - 1], len(data))
    assert parse_safetensors_header("w", data[:end], len(data))


def test_every_dtype_and_rank() -> None:
    kinds = {"F32": F32, "F16": F16, "I32": I32, "I64": I64, "U8": U8, "I8": I8, "BOOL": BOOL}
    tensors: dict[str, Any] = {"__metadata__": {"format": "np"}}
    wanted, position = [], 0
    for rank, (code, dtype) in enumerate(kinds.items()):
        dims = (16, 1, 2, 1, 1, 1, 1, 1)[:rank] if rank else ()
        nbytes = int(np.prod(dims, dtype=int)) * dtype.host.itemsize
        padding = -nbytes % 16
        tensors[code] = entry(code, dims, position, position + nbytes)
        wanted.append((code, dtype, dims, position, nbytes))
        if padding:
            end = position + nbytes + padding
            tensors[f"__pad_{rank}"] = entry("U8", [padding], end - padding, end)
        position += nbytes + padding
    data = safetensors_bytes(tensors, bytes(position))
    start = len(data) - position
    assert parse_safetensors_header("w", data, len(data)) == [
        TensorEntry(name, dtype, dims, start + offset, nbytes)
        for name, dtype, dims, offset, nbytes in wanted
    ]
