"""Packed weights byte by byte."""

import numpy as np

from py_runtime.program.weight_kinds import pack_linear_scales, pack_nibbles


def test_nibbles_lie_low_first_in_rows_of_whole_words() -> None:
    packed = pack_nibbles(np.arange(1, 13).reshape(1, 12))
    assert packed.dtype == np.uint8
    assert packed.tobytes() == bytes.fromhex("21 43 65 87 a9 cb 88 88")


def test_scales_of_a_linear_are_transposed_and_padded() -> None:
    packed = pack_linear_scales(np.arange(10, dtype=np.float32).reshape(5, 2))
    expected = [[0, 2, 4, 6, 8, 0, 0, 0], [1, 3, 5, 7, 9, 0, 0, 0]]
    np.testing.assert_array_equal(packed, expected)
