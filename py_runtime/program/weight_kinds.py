"""Weight kinds as they are stored: their shapes, and how 4-bit values and scales are packed."""

from dataclasses import dataclass

import numpy as np

from py_runtime.base.dtypes import I8, U8, DType
from py_runtime.base.shapes import Dims, ceil_div

BLOCK = 32  # columns that share a scale in a BlockKind


@dataclass(frozen=True)
class BlockKind:
    """Weights in groups of 32 columns with f16 scales: the values of the GGUF type of this name."""

    name: str
    dtype: DType  # of the packed weight
    columns_per_element: int
    scale_parts: Dims  # (2,) where each group has a scale and a minimum

    def scale_dims(self, rows: int, columns: int) -> Dims:
        return (rows, columns // BLOCK, *self.scale_parts)


Q4_0 = BlockKind("q4_0", U8, 2, ())  # (q - 8) * scale, q in 0..15
Q4_1 = BlockKind("q4_1", U8, 2, (2,))  # q * scale + minimum, q in 0..15
Q8_0 = BlockKind("q8_0", I8, 1, ())  # q * scale, q in -128..127


def q4gsw_row_bytes(columns: int) -> int:
    """Rows of q4gsw weights are whole 32-bit words: eight columns each."""
    return ceil_div(columns, 8) * 4


def pack_nibbles(values: np.ndarray) -> np.ndarray:
    """[N, K] of 0..15 → u8 [N, ceil(K / 8) * 4]: even columns low; 8, a zero, past the end."""
    rows, columns = values.shape
    padded = np.full((rows, q4gsw_row_bytes(columns) * 2), 8, np.uint8)
    padded[:, :columns] = values
    return padded[:, 0::2] | padded[:, 1::2] << 4


def pack_linear_scales(scales: np.ndarray) -> np.ndarray:
    """[N, G] → [G, N padded with zeros to a multiple of 4], as linear_q4gsw takes them."""
    rows, groups = scales.shape
    packed = np.zeros((groups, ceil_div(rows, 4) * 4), np.float32)
    packed[:, :rows] = scales.T
    return packed
