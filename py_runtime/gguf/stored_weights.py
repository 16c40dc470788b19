"""From the blocks of a GGUF tensor to what the engine's kernels read: the same numbers, in planes.

GGUF has a block's scale before its values; kernels want all scales of a matrix apart, and 4-bit
values as pairs of neighbours. Nothing is rounded.
"""

import numpy as np

from py_runtime.decoder.config import FLOAT, WeightKind
from py_runtime.gguf.dequantise import dequantise, nibbles
from py_runtime.gguf.tensor_types import TensorType

FLOATS = ("F32", "F16", "BF16")
SCALE_BYTES = {"Q4_0": 2, "Q4_1": 4, "Q8_0": 2}  # at the beginning of a block
# Types that kernels exist for, and the kind of weight they become.
KIND_OF = {name: WeightKind(FLOAT) for name in FLOATS}
KIND_OF |= {name: WeightKind(name.lower()) for name in SCALE_BYTES}

Planes = dict[str, np.ndarray]  # by the part of a weight: bytes, or float32


def planes(kind: TensorType, data: np.ndarray) -> Planes:
    """The parts of whole blocks (u8, in a row): as long as the blocks are many."""
    if kind.name in FLOATS:
        return {"weight": dequantise(kind, data)}
    blocks = data.reshape(-1, kind.nbytes)
    scale_bytes = SCALE_BYTES[kind.name]
    values = np.ascontiguousarray(blocks[:, scale_bytes:])
    packed = values if kind.name == "Q8_0" else _pairs(values)
    scales = np.ascontiguousarray(blocks[:, :scale_bytes])
    return {"weight": packed.reshape(-1), "scales": scales.reshape(-1)}


def are_finite(parts: Planes) -> bool:
    """Whether scales and floats are numbers: one that is not would spoil every token."""
    numbers = parts["scales"].view("<f2") if "scales" in parts else parts["weight"]
    return bool(np.isfinite(numbers).all())


def in_halves(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """Rows of whole heads, whose rotary pairs lie side by side: (2i, 2i + 1) → (i, i + half)."""
    pairs = rows.reshape(-1, head_dim // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


def _pairs(packed: np.ndarray) -> np.ndarray:
    """[B, 16] with values i and i + 16 in a byte → [B, 16] with values 2i and 2i + 1."""
    values = nibbles(packed)  # [B, 32]
    pairs: np.ndarray = values[:, 0::2] | values[:, 1::2] << 4
    return pairs
