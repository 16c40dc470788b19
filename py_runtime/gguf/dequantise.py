"""Values of a tensor's blocks: float32, bit for bit those of llama.cpp's `gguf`.

Each function takes blocks: u8 [B, bytes of a block] and returns f32 [B, values of a block]. d and m
are scale and minimum, q the small integers; j counts the groups of a block that share a scale.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from py_runtime.gguf.tensor_types import BY_NAME, TensorType

Blocks = np.ndarray
Floats = NDArray[np.float32]

# The values of the sixteen nibbles of the non-linear types.
NON_LINEAR = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32
)
_HALVES_OF_FP4 = [0, 1, 2, 3, 4, 6, 8, 12]
TWICE_FP4 = np.array([*_HALVES_OF_FP4, *(-value for value in _HALVES_OF_FP4)], np.float32)


def dequantise(kind: TensorType, data: bytes | np.ndarray) -> Floats:
    """Return all values in a row; `data` has whole blocks."""
    blocks = np.frombuffer(data, np.uint8).reshape(-1, kind.nbytes)
    return DEQUANTISERS[kind.name](blocks).reshape(-1)


def floats(values: np.ndarray) -> Floats:
    """Convert to float32."""
    return values.astype(np.float32)


def halves(blocks: Blocks, at: int) -> Floats:
    """Return the float16 at a byte of each block, as f32 [B, 1]."""
    return floats(np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2"))


def nibbles(packed: Blocks) -> np.ndarray:
    """[..., n] bytes → [..., 2n]: all low ones, then all high ones."""
    return np.concatenate((packed & 15, packed >> 4), -1)


def _fifth_bits(blocks: Blocks, at: int) -> np.ndarray:
    """Bit i of the u32 there is the fifth of value i: [B, 32], 0 or 16."""
    bits = np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little")
    return bits << 4


def _f32(blocks: Blocks) -> Floats:
    return blocks.view("<f4")


def _f16(blocks: Blocks) -> Floats:
    return floats(blocks.view("<f2"))


def _bf16(blocks: Blocks) -> Floats:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q4_0(blocks: Blocks) -> Floats:
    q = nibbles(blocks[:, 2:]).astype(np.int8) - np.int8(8)
    return halves(blocks, 0) * floats(q)


def _q4_1(blocks: Blocks) -> Floats:
    q = floats(nibbles(blocks[:, 4:]))
    return halves(blocks, 0) * q + halves(blocks, 2)


def _q5_0(blocks: Blocks) -> Floats:
    q = (nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)).astype(np.int8) - np.int8(16)
    return halves(blocks, 0) * floats(q)


def _q5_1(blocks: Blocks) -> Floats:
    q = nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4)
    return halves(blocks, 0) * floats(q) + halves(blocks, 2)


def _q8_0(blocks: Blocks) -> Floats:
    return halves(blocks, 0) * floats(blocks[:, 2:].view(np.int8))


def _crumbs(packed: Blocks) -> np.ndarray:
    """[B, 64] bytes of two-bit values → [B, 2, 4, 32]: in 32 bytes each shift is a run of 32."""
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    return (packed.reshape(-1, 2, 1, 32) >> shifts) & 3


def _q2_k(blocks: Blocks) -> Floats:
    scales, d, m = blocks[:, :16], halves(blocks, 80), halves(blocks, 82)
    q = floats(_crumbs(blocks[:, 16:80]).reshape(-1, 16, 16))
    d = np.expand_dims(d * floats(scales & 15), -1)  # [B, 16, 1]
    m = np.expand_dims(m * floats(scales >> 4), -1)
    return d * q - m


def _q3_k(blocks: Blocks) -> Floats:
    mask, packed, stored = blocks[:, :32], blocks[:, 32:96], blocks[:, 96:108]
    low = nibbles(stored[:, :8])  # [B, 16]
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(1, 4, 1)
    high = ((stored[:, None, 8:] >> shifts) & 3).reshape(-1, 16)
    scales = (low | high << 4).astype(np.int8) - np.int8(32)
    d = np.expand_dims(halves(blocks, 108) * floats(scales), -1)  # [B, 16, 1]
    bits = (mask[:, None, :] >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1)) & 1  # [B, 8, 32]
    crumbs = _crumbs(packed).reshape(-1, 8, 32).astype(np.int8)
    q = crumbs - (bits ^ 1).astype(np.int8) * np.int8(4)  # a bit that is not set takes four away
    return d * floats(q.reshape(-1, 16, 16))


def _six_bit_scales(stored: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """[B, 12] bytes of Q4_K and Q5_K → scales and minima, [B, 8] each, 0 to 63."""
    first, second, rest = stored[:, :4], stored[:, 4:8], stored[:, 8:]
    scales = np.concatenate((first & 63, rest & 15 | (first >> 6) << 4), 1)
    minima = np.concatenate((second & 63, rest >> 4 | (second >> 6) << 4), 1)
    return scales, minima


def _runs_of_nibbles(packed: Blocks) -> np.ndarray:
    """[B, 128] bytes → [B, 8, 32]: 32 bytes have one run low and the next one high."""
    shifts = np.array([0, 4], np.uint8).reshape(1, 1, 2, 1)
    return ((packed.reshape(-1, 4, 1, 32) >> shifts) & 15).reshape(-1, 8, 32)


def _scaled_runs(blocks: Blocks, q: np.ndarray) -> Floats:
    """Q4_K and Q5_K: [B, 8, 32] integers with the scale and minimum of each run."""
    scales, minima = _six_bit_scales(blocks[:, 4:16])
    d = np.expand_dims(halves(blocks, 0) * floats(scales), -1)  # [B, 8, 1]
    m = np.expand_dims(halves(blocks, 2) * floats(minima), -1)
    return d * floats(q) - m


def _q4_k(blocks: Blocks) -> Floats:
    return _scaled_runs(blocks, _runs_of_nibbles(blocks[:, 16:]))


def _q5_k(blocks: Blocks) -> Floats:
    shifts = np.arange(8, dtype=np.uint8).reshape(1, 8, 1)
    fifth = (blocks[:, None, 16:48] >> shifts) & 1  # [B, 8, 32]
    return _scaled_runs(blocks, _runs_of_nibbles(blocks[:, 48:]) | fifth << 4)


def _q6_k(blocks: Blocks) -> Floats:
    low = nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 16, 16)
    high = _crumbs(blocks[:, 128:192]).reshape(-1, 16, 16)
    q = (low | high << 4).astype(np.int8) - np.int8(32)
    scales = floats(blocks[:, 192:208].view(np.int8))
    d = np.expand_dims(halves(blocks, 208) * scales, -1)  # [B, 16, 1]
    return d * floats(q)


def _iq4_nl(blocks: Blocks) -> Floats:
    return halves(blocks, 0) * np.take(NON_LINEAR, nibbles(blocks[:, 2:]))


def _iq4_xs(blocks: Blocks) -> Floats:
    high = np.ascontiguousarray(blocks[:, 2:4]).view("<u2")  # [B, 1]
    high = (high >> np.arange(0, 16, 2, dtype=np.uint16)).astype(np.uint8) & 3  # [B, 8]
    low = np.stack((blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4), -1).reshape(-1, 8)
    scales = (low | high << 4).astype(np.int8) - np.int8(32)
    d = np.expand_dims(halves(blocks, 0) * floats(scales), -1)  # [B, 8, 1]
    return d * np.take(NON_LINEAR, nibbles(blocks[:, 8:].reshape(-1, 8, 16)))


def _mxfp4(blocks: Blocks) -> Floats:
    half_scale = np.ldexp(np.float32(1), blocks[:, :1].astype(np.int32) - 128)
    return half_scale * np.take(TWICE_FP4, nibbles(blocks[:, 1:]))


DEQUANTISERS: dict[str, Callable[[Blocks], Floats]] = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "IQ4_NL": _iq4_nl,
    "IQ4_XS": _iq4_xs,
    "MXFP4": _mxfp4,
}
assert DEQUANTISERS.keys() <= BY_NAME.keys(), "each has its layout"
