"""Kinds of stored weights: their shapes, and how 4-bit values and scales are packed."""

from dataclasses import dataclass

import numpy as np

from py_runtime.base.dtypes import F16, I8, U8, DType
from py_runtime.base.shapes import Dims, ceil_div, round_up

FLOAT, Q4GSW = "f32", "q4gsw"  # beside those of BLOCK_KINDS
BLOCK = 32  # columns that a kernel takes at a time; where nothing else is said, they share a scale


@dataclass(frozen=True)
class BlockKind:
    """A GGUF type whose rows are whole blocks, stored in two planes.

    A weight is [rows, elements], and a second plane beside it holds the scales. The meaning of each
    byte is defined by shaders/shared/weights/blocks_{name}.wgsl and written by
    py_runtime/gguf/planes.py.
    """

    name: str
    block: int  # columns
    elements: int  # of a block, in the weight
    scale_elements: int  # of a block, in the scales; 0: there are none
    dtype: DType = U8  # of the weight
    scale_dtype: DType = U8
    scale_parts: Dims = ()  # (2,) where each block has a scale and a minimum
    halves: int = 1  # scales that 32 columns have

    def weight_dims(self, rows: int, columns: int) -> Dims:
        return (rows, columns // self.block * self.elements)

    def columns(self, elements: int) -> int:
        """Return the columns of a row of the weight."""
        return elements * self.block // self.elements

    def scale_dims(self, rows: int, columns: int) -> Dims:
        return (rows, columns // self.block * self.scale_elements, *self.scale_parts)

    @property
    def has_scales(self) -> bool:
        return self.scale_elements > 0

    @property
    def linear(self) -> str:
        """Return the name of the op that multiplies by such a weight."""
        return f"inpage.linear_{self.name}.default"

    @property
    def embedding(self) -> str:
        """Return the name of the op that looks up its rows."""
        return f"inpage.embedding_{self.name}.default"


BLOCK_KINDS = {
    kind.name: kind
    for kind in (
        BlockKind("q4_0", 32, 16, 1, scale_dtype=F16),
        BlockKind("q4_1", 32, 16, 1, scale_dtype=F16, scale_parts=(2,)),
        BlockKind("q8_0", 32, 32, 1, I8, F16),
        BlockKind("q5_0", 32, 16, 6),
        BlockKind("q5_1", 32, 16, 8),
        BlockKind("q4_k", 256, 128, 16),
        BlockKind("q5_k", 256, 160, 16),
        BlockKind("q6_k", 256, 192, 18, halves=2),
        BlockKind("q3_k", 256, 96, 14, halves=2),
        BlockKind("q2_k", 256, 64, 20, halves=2),
        BlockKind("iq4_nl", 32, 16, 2),
        BlockKind("iq4_xs", 256, 128, 8),
        BlockKind("mxfp4", 32, 16, 1),
        BlockKind("f16", 4, 4, 0, F16),
        BlockKind("bf16", 4, 8, 0),
    )
}


def has_scales(kind: str) -> bool:
    """Return whether a weight of this kind has a second plane."""
    return BLOCK_KINDS[kind].has_scales if kind in BLOCK_KINDS else kind != FLOAT


def q4gsw_row_bytes(columns: int) -> int:
    """Return the bytes of a row of q4gsw weights: whole 32-bit words of eight columns each."""
    return ceil_div(columns, 8) * 4


def pack_nibbles(values: np.ndarray) -> np.ndarray:
    """Pack [N, K] of 0..15 into u8 [N, ceil(K / 8) * 4], even columns low, padded with 8 (zero)."""
    rows, columns = values.shape
    padded = np.full((rows, q4gsw_row_bytes(columns) * 2), 8, np.uint8)
    padded[:, :columns] = values
    return padded[:, 0::2] | padded[:, 1::2] << 4


def pack_linear_scales(scales: np.ndarray) -> np.ndarray:
    """Transpose scales [N, G] to [G, N padded with zeros to a multiple of 4] for linear_q4gsw."""
    rows, groups = scales.shape
    packed = np.zeros((groups, round_up(rows, 4)), np.float32)
    packed[:, :rows] = scales.T
    return packed
