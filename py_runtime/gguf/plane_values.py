"""Values of a weight's planes (py_runtime/gguf/planes.py makes them of a GGUF's blocks).

Each function takes weight: u8 [B, bytes] and scales: u8 [B, bytes], and returns f32 [B, columns].
Values are those of llama.cpp's `gguf`, bit for bit.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from py_runtime.gguf.dequantise import NON_LINEAR, TWICE_FP4
from py_runtime.program.weight_kinds import BLOCK_KINDS

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


def dense(name: str, weight: np.ndarray, scales: np.ndarray | None) -> Floats:
    """Return any of BLOCK_KINDS as [rows, columns]."""
    rows = weight.shape[0]
    kind = BLOCK_KINDS[name]
    if scales is None:
        floats = weight if name == "f16" else _upper_halves(np.ascontiguousarray(weight))
        return floats.astype(np.float32).reshape(rows, -1)
    blocks = np.ascontiguousarray(weight).reshape(-1, kind.elements)
    own = np.ascontiguousarray(scales).view(np.uint8).reshape(len(blocks), -1)
    values: Floats = DENSE[name](blocks, own).astype(np.float32, copy=False)
    return values.reshape(rows, -1)


def _upper_halves(weight: np.ndarray) -> np.ndarray:
    return (weight.view("<u2").astype(np.uint32) << 16).view(np.float32)


# Small integers out of words of eight columns, and of 32 -------------------------------------


def word_nibbles(plane: Bytes) -> np.ndarray:
    """[..., 4n] → [..., 8n]: a word has four columns in low nibbles, four more in high ones."""
    words = plane.reshape(*plane.shape[:-1], -1, 4)
    return np.concatenate((words & 15, words >> 4), -1).reshape(*plane.shape[:-1], -1)


def fields(plane: Bytes, bits: int) -> np.ndarray:
    """[..., 4n] → [..., 4n * 8 / bits]: a word's lowest fields are of the first four columns."""
    words = plane.reshape(*plane.shape[:-1], -1, 1, 4)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    columns: np.ndarray = ((words >> shifts) & (2**bits - 1)).reshape(*plane.shape[:-1], -1)
    return columns


def pairs(plane: Bytes) -> np.ndarray:
    """[B, n] → [B, 2n]: neighbouring columns share a byte."""
    return np.stack((plane & 15, plane >> 4), -1).reshape(len(plane), -1)


def half(scales: Bytes, at: int) -> Floats:
    """[B, 1]."""
    return np.ascontiguousarray(scales[:, at : at + 2]).view("<f2").astype(np.float32)


def in_order(scales: Bytes) -> tuple[Bytes, Bytes]:
    """[B, 4w + 2], of which every second block has its half first → [B, 4w] and [B, 2]."""
    straight = scales.copy()
    straight[1::2] = np.roll(scales[1::2], -2, axis=1)
    return straight[:, :-2], straight[:, -2:]


def scale_groups(values: np.ndarray, *factors: Floats) -> Floats:
    """Multiply values [B, columns] by factors of as many columns each: [B, groups]."""
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    groups = values.reshape(*product.shape, -1).astype(np.float32)
    result: Floats = (product[..., None] * groups).reshape(len(values), -1)
    return result


def _floats(values: np.ndarray) -> Floats:
    return values.astype(np.float32)


# The kinds ----------------------------------------------------------------------------------


def _q4_0(weight: Bytes, scales: Bytes) -> Floats:
    return scale_groups(_floats(pairs(weight)) - 8, half(scales, 0))


def _q4_1(weight: Bytes, scales: Bytes) -> Floats:
    return scale_groups(pairs(weight), half(scales, 0)) + half(scales, 2)


def _q8_0(weight: Bytes, scales: Bytes) -> Floats:
    return scale_groups(weight.view(np.int8), half(scales, 0))


def _q5_0(weight: Bytes, scales: Bytes) -> Floats:
    bits, scale = in_order(scales)
    values = word_nibbles(weight) | fields(np.ascontiguousarray(bits), 1) << 4
    return scale_groups(_floats(values) - 16, half(scale, 0))


def _q5_1(weight: Bytes, scales: Bytes) -> Floats:
    values = word_nibbles(weight) | fields(scales[:, 4:], 1) << 4
    return scale_groups(values, half(scales, 0)) + half(scales, 2)


def _k_affine(values: np.ndarray, scales: Bytes) -> Floats:
    low, minima, above = (scales[:, at : at + 4] for at in (4, 8, 12))

    def six_bits(four: Bytes, two: np.ndarray) -> Floats:
        return _floats(
            np.concatenate((four & 15 | (two & 3) << 4, four >> 4 | (two >> 2 & 3) << 4), 1)
        )

    minimum: Floats = half(scales, 2) * six_bits(minima, above >> 4)  # [B, 8]
    return scale_groups(values, half(scales, 0) * six_bits(low, above)) - minimum.repeat(32, 1)


def _q4_k(weight: Bytes, scales: Bytes) -> Floats:
    return _k_affine(word_nibbles(weight), scales)


def _q5_k(weight: Bytes, scales: Bytes) -> Floats:
    return _k_affine(word_nibbles(weight[:, :128]) | fields(weight[:, 128:], 1) << 4, scales)


def _q6_k(weight: Bytes, scales: Bytes) -> Floats:
    values = word_nibbles(weight[:, :128]) | fields(weight[:, 128:], 2) << 4
    own = _floats(np.ascontiguousarray(scales[:, :16]).view(np.int8))
    return scale_groups(_floats(values) - 32, half(scales, 16) * own)


def _q3_k(weight: Bytes, scales: Bytes) -> Floats:
    values = fields(weight[:, :64], 2) | fields(weight[:, 64:], 1) << 2
    packed, scale = in_order(scales)
    low = np.concatenate((packed[:, :8] & 15, packed[:, :8] >> 4), 1)
    high = np.concatenate([packed[:, 8:] >> shift & 3 for shift in (0, 2, 4, 6)], 1)
    own = _floats(low | high << 4) - 32
    return scale_groups(_floats(values) - 4, half(scale, 0) * own)


def _q2_k(weight: Bytes, scales: Bytes) -> Floats:
    own = scales[:, :16]
    minimum = half(scales, 18) * _floats(own >> 4)
    return scale_groups(fields(weight, 2), half(scales, 16) * _floats(own & 15)) - minimum.repeat(
        16, 1
    )


def _iq4_nl(weight: Bytes, scales: Bytes) -> Floats:
    return scale_groups(NON_LINEAR[word_nibbles(weight)], half(scales, 0))


def _iq4_xs(weight: Bytes, scales: Bytes) -> Floats:
    low = pairs(scales[:, 4:])
    above = np.ascontiguousarray(scales[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16)
    own = _floats(low | ((above & 3) << 4).astype(np.uint8)) - 32
    return scale_groups(NON_LINEAR[word_nibbles(weight)], half(scales, 0) * own)


def _mxfp4(weight: Bytes, scales: Bytes) -> Floats:
    half_scale = np.ldexp(np.float32(1), scales.astype(np.int32) - 128)
    return scale_groups(TWICE_FP4[word_nibbles(weight)], half_scale)


DENSE: dict[str, Callable[[Bytes, Bytes], Floats]] = {
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q8_0": _q8_0,
    "q2_k": _q2_k,
    "q3_k": _q3_k,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
    "iq4_nl": _iq4_nl,
    "iq4_xs": _iq4_xs,
    "mxfp4": _mxfp4,
}
