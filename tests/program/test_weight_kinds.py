"""Weight kinds byte by byte: how they are packed, and how many bytes of GGUF's blocks they are."""

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from py_runtime.decoder.tensors import WeightKind, bias_rows, weight_parts
from py_runtime.gguf.planes import planes
from py_runtime.gguf.tensor_types import BY_NAME
from py_runtime.program.weight_kinds import (
    BLOCK_KINDS,
    has_scales,
    pack_linear_scales,
    pack_nibbles,
    q4gsw_row_bytes,
)

ROWS = 3  # of two blocks each


def test_nibbles_lie_low_first_in_rows_of_whole_words() -> None:
    packed = pack_nibbles(np.arange(1, 13).reshape(1, 12))
    assert packed.dtype == np.uint8
    assert packed.tobytes() == bytes.fromhex("21 43 65 87 a9 cb 88 88")


def test_scales_of_a_linear_are_transposed_and_padded() -> None:
    packed = pack_linear_scales(np.arange(10, dtype=np.float32).reshape(5, 2))
    expected = [[0, 2, 4, 6, 8, 0, 0, 0], [1, 3, 5, 7, 9, 0, 0, 0]]
    np.testing.assert_array_equal(packed, expected)


def test_rows_of_nibbles_are_whole_words() -> None:
    assert [q4gsw_row_bytes(columns) for columns in (1, 7, 8, 9, 16, 17)] == [4, 4, 4, 8, 8, 12]


@pytest.mark.parametrize("name", BLOCK_KINDS)
def test_a_block_has_the_size_that_the_gguf_package_knows(name: str) -> None:
    kind = BLOCK_KINDS[name]
    values, nbytes = GGML_QUANT_SIZES[GGMLQuantizationType[name.upper()]]
    assert kind.block % values == 0
    columns = 2 * kind.block
    (rows, elements), scales = kind.weight_dims(ROWS, columns), kind.scale_dims(ROWS, columns)
    assert (rows, scales[0]) == (ROWS, ROWS)
    held = rows * elements * kind.dtype.gpu_bytes
    held += int(np.prod(scales)) * kind.scale_dtype.gpu_bytes
    assert held == ROWS * columns // values * nbytes
    assert kind.columns(elements) == columns


@pytest.mark.parametrize("name", BLOCK_KINDS)
def test_its_planes_are_as_long_as_they_become(name: str) -> None:
    """The planes are a block's values and its scales."""
    kind, layout = BLOCK_KINDS[name], BY_NAME[name.upper()]
    columns = 2 * kind.block
    data = np.zeros(ROWS * columns // layout.values * layout.nbytes, np.uint8)
    found = {part: len(plane) for part, plane in planes(layout, data).items()}
    declared = weight_parts(WeightKind(name), ROWS, columns)
    assert found == {
        part: int(np.prod(dims)) * dtype.gpu_bytes for part, (dims, dtype) in declared.items()
    }
    assert has_scales(name) == kind.has_scales == ("scales" in found)


def test_scales_of_32_columns() -> None:
    """llama.cpp's tables: K kinds with a scale for each 16 columns have two in a block of 32."""
    halves = {name: kind.halves for name, kind in BLOCK_KINDS.items() if kind.halves != 1}
    assert halves == {"q6_k": 2, "q3_k": 2, "q2_k": 2}


def test_kinds_without_blocks() -> None:
    assert [has_scales(name) for name in ("f32", "q4gsw")] == [False, True]
    parts = weight_parts(WeightKind("q4gsw", 64), 5, 100)
    assert {name: dims for name, (dims, _) in parts.items()} == {
        "weight": (5, 52),  # 100 columns are 13 words
        "scales": (2, 8),
    }
    assert weight_parts(WeightKind("q4gsw"), 4, 96)["scales"][0] == (3, 4)
    assert {name: dims for name, (dims, _) in weight_parts(WeightKind("f32"), 5, 7).items()} == {
        "weight": (5, 7)
    }
    kinds = ("q4gsw", "q4gsw", "q4gsw", "q8_0", "f32")
    rows = (4, 5, 8, 5, 5)
    found = [bias_rows(WeightKind(kind), count) for kind, count in zip(kinds, rows, strict=True)]
    assert found == [4, 8, 8, 5, 5]
