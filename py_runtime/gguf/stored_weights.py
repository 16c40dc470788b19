"""The kind of weight that a GGUF tensor becomes: types are taken as they are."""

import numpy as np

from py_runtime.decoder.tensors import WeightKind
from py_runtime.gguf.planes import SPLITTERS, Planes, planes, widen
from py_runtime.gguf.tensor_types import TensorType
from py_runtime.program.weight_kinds import BLOCK_KINDS, FLOAT

FLOATS = ("F32", "F16", "BF16")
# Types that kernels exist for.
KNOWN = (*FLOATS, *SPLITTERS)
OCTET = 8  # columns: floats of 16 bits in other rows are widened


def kind_of(stored: TensorType, columns: int) -> WeightKind | None:
    """None for a type that no kernel reads."""
    if stored.name not in KNOWN:
        return None
    name = stored.name.lower()
    is_wide = stored.name == "F32" or (stored.name in FLOATS and columns % OCTET != 0)
    return WeightKind(FLOAT if is_wide else name)


def parts_of_blocks(stored: TensorType, kind: WeightKind | None, data: np.ndarray) -> Planes:
    """Whole blocks as the parts of a weight; without a kind they are floats, and become f32."""
    if kind is None or kind.name == FLOAT:
        return widen(stored, data)
    return planes(stored, data)


def in_halves(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """Rows of whole heads, whose rotary pairs lie side by side: (2i, 2i + 1) → (i, i + half)."""
    pairs = rows.reshape(-1, head_dim // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


assert {name.lower() for name in KNOWN} == {*BLOCK_KINDS, FLOAT}, "each has its kind"
