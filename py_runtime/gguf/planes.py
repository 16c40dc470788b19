"""Planes of a GGUF tensor, as the engine's kernels read them: the blocks' own bytes, reordered.

GGUF has a block's scales beside its values, and values of a byte 16, 32 or 64 columns apart.
Kernels take aligned words of eight columns, and scales from a plane of their own. Nothing is
rounded, and nothing grows. shaders/shared/weights/blocks_*.wgsl say what the bytes mean.

Blocks are handled with the words of all of them side by side, u32 [words of a block, B]: numpy is
quick where the innermost dim is long.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from py_runtime.gguf.dequantise import dequantise
from py_runtime.gguf.tensor_types import BY_NAME, TensorType

Planes = dict[str, np.ndarray]  # by the part of a weight: bytes, or float32
Blocks = np.ndarray  # u8 [B, bytes of a block]
Words = NDArray[np.uint32]  # [words, B]

MASKS = {4: np.uint32(0x0F0F0F0F), 2: np.uint32(0x33333333), 1: np.uint32(0x55555555)}


def planes(kind: TensorType, data: np.ndarray) -> Planes:
    """Split whole blocks (u8, in a row) into planes; their number is even, or they are the last."""
    if kind.name in FLOATS_OF_16:
        return {"weight": data}
    weight, scales = SPLITTERS[kind.name](data.reshape(-1, kind.nbytes))
    return {"weight": weight.reshape(-1), "scales": scales.reshape(-1)}


def widen(kind: TensorType, data: np.ndarray) -> Planes:
    """Floats of any width as float32."""
    return {"weight": dequantise(kind, data)}


def are_finite(kind: TensorType, data: np.ndarray) -> bool:
    """Return whether scales and floats are numbers: one that is not would spoil every token."""
    if kind.name == "F32":
        return bool(np.isfinite(data.view("<f4")).all())
    if kind.name in FLOATS_OF_16:
        exponent = np.uint16(FLOATS_OF_16[kind.name])
        return not ((data.view("<u2") & exponent) == exponent).any()
    blocks = data.reshape(-1, kind.nbytes)
    if kind.name == "MXFP4":
        return not (blocks[:, 0] == 255).any()
    at = HALVES_AT[kind.name]
    ends = np.ascontiguousarray(blocks[:, at[0] : at[-1] + 2]).view("<u2")
    return not ((ends & np.uint16(HALF_EXPONENT)) == HALF_EXPONENT).any()


HALF_EXPONENT = 0x7C00
FLOATS_OF_16 = {"F16": HALF_EXPONENT, "BF16": 0x7F80}  # the bits of an exponent
# The bytes at which blocks have their halves, next to each other.
HALVES_AT = {
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q5_1": (0, 2),
    "Q8_0": (0,),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "IQ4_NL": (0,),
    "IQ4_XS": (0,),
}


# Words of blocks -----------------------------------------------------------------------------


def words(blocks: Blocks, start: int, end: int) -> Words:
    """Return the bytes from start to end of each block: [words, B]."""
    own = np.ascontiguousarray(blocks[:, start:end]).view("<u4")
    return np.array(own.T, order="C")


def by_block(*parts: Words) -> np.ndarray:
    """Words of the parts, one after the other in each block: u8 [B, bytes]."""
    flat = [part.reshape(-1, part.shape[-1]) for part in parts]
    return np.ascontiguousarray(np.concatenate(flat).T).view(np.uint8)


def transpose(rows: Words) -> None:
    """Swap field f of row r with field r of row f, in place; each byte of R rows has R fields."""
    count, rest = len(rows), rows.shape[1:]
    distance = count // 2
    while distance:
        shift = np.uint32(distance * 8 // count)
        pairs = rows.reshape(count // (2 * distance), 2, distance, *rest)
        first, second = pairs[:, 0], pairs[:, 1]
        swapped = ((first >> shift) ^ second) & MASKS[int(shift)]
        second ^= swapped
        first ^= swapped << shift
        distance //= 2


def octets_of_nibbles(packed: Words, runs: int) -> Words:
    """Each run of bytes has columns in its low nibbles, the next ones in its high nibbles.

    → a word for eight columns: the first four in low nibbles, the others in high ones.
    """
    count, blocks = packed.shape
    split = packed.reshape(runs, count // (2 * runs), 2, blocks)
    for run in split.swapaxes(1, 2):  # [2, octets, B]
        transpose(run)
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(count, blocks)


def blocks_of_crumbs(packed: Words) -> Words:
    """[16, B]: 32 bytes have four runs of 32 columns, two bits each → two words for 32 columns."""
    split = packed.reshape(2, 2, 4, -1)  # [half of the columns, half of a run, words, B]
    for half in split.reshape(4, 4, -1):
        transpose(half)
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(16, -1)


def blocks_of_bits(packed: Words) -> Words:
    """[8, B]: bit j of 32 bytes is of the j-th 32 columns → a word for 32 columns."""
    transpose(packed)
    return packed


@cache
def _spread_bits() -> NDArray[np.uint32]:
    """Eight columns' bits → where fifth_bits.wgsl wants them: bit 4w + k becomes bit 8k + w."""
    every = np.arange(256, dtype=np.uint32)
    spread = np.zeros(256, np.uint32)
    for at in range(8):
        spread |= ((every >> at) & 1) << (8 * (at % 4) + at // 4)
    return spread


def fifth_bits(packed: Blocks) -> np.ndarray:
    """[B, 4]: bit i is of column i → u32 [B, 1] as blocks_of_bits has them."""
    spread = _spread_bits()
    bits = np.zeros(len(packed), np.uint32)
    for at in range(4):
        bits |= spread[packed[:, at]] << np.uint32(2 * at)
    return bits.reshape(-1, 1)


def in_turns(words_first: np.ndarray, half: np.ndarray) -> np.ndarray:
    """u8 [B, 4w] and [B, 2] → [B, 4w + 2], every second block the half first: words stay whole."""
    width = words_first.shape[1]
    mixed = np.empty((len(half), width + 2), np.uint8)
    mixed[0::2, :width], mixed[0::2, width:] = words_first[0::2], half[0::2]
    mixed[1::2, :2], mixed[1::2, 2:] = half[1::2], words_first[1::2]
    return mixed


# The types ------------------------------------------------------------------------------------


def _pairs(packed: Blocks) -> np.ndarray:
    """[B, 16] with values i and i + 16 in a byte → [B, 16] with values 2i and 2i + 1."""
    two = np.ascontiguousarray(packed).view("<u2")  # bytes that lie side by side: [B, 8]
    pairs = np.empty(packed.shape, np.uint8)
    pairs[:, :8] = (two & 15) | (two >> 4 & 0xF0)
    pairs[:, 8:] = (two >> 4 & 15) | (two >> 8 & 0xF0)
    return pairs


Split = tuple[np.ndarray, np.ndarray]  # weight and scales


def _q4_0(blocks: Blocks) -> Split:
    return _pairs(blocks[:, 2:]), np.ascontiguousarray(blocks[:, :2])


def _q4_1(blocks: Blocks) -> Split:
    return _pairs(blocks[:, 4:]), np.ascontiguousarray(blocks[:, :4])


def _q8_0(blocks: Blocks) -> Split:
    return np.ascontiguousarray(blocks[:, 2:]), np.ascontiguousarray(blocks[:, :2])


def _nibbles_of_32(blocks: Blocks, start: int) -> np.ndarray:
    """Sixteen bytes, the first half of the columns in their low nibbles."""
    return by_block(octets_of_nibbles(words(blocks, start, start + 16), 1))


def _q5_0(blocks: Blocks) -> Split:
    bits = fifth_bits(blocks[:, 2:6]).view(np.uint8)
    return _nibbles_of_32(blocks, 6), in_turns(bits, blocks[:, :2])


def _q5_1(blocks: Blocks) -> Split:
    bits = fifth_bits(blocks[:, 4:8]).view(np.uint8)
    return _nibbles_of_32(blocks, 8), np.concatenate((blocks[:, :4], bits), 1)


def _iq4_nl(blocks: Blocks) -> Split:
    return _nibbles_of_32(blocks, 2), np.ascontiguousarray(blocks[:, :2])


def _mxfp4(blocks: Blocks) -> Split:
    return _nibbles_of_32(blocks, 1), np.ascontiguousarray(blocks[:, :1])


def _k_scales(blocks: Blocks) -> np.ndarray:
    """Reorder scales and minima as k_scales.wgsl reads them."""
    ends, first, second, rest = words(blocks, 0, 16)
    low, high = MASKS[4], ~MASKS[4]
    scales = (first & low) | (rest & low) << np.uint32(4)
    minima = (second & low) | (rest & high)
    above = (first >> np.uint32(4) & low) | (second & high)
    return by_block(np.stack((ends, scales, minima, above)))


def _q4_k(blocks: Blocks) -> Split:
    return by_block(octets_of_nibbles(words(blocks, 16, 144), 4)), _k_scales(blocks)


def _q5_k(blocks: Blocks) -> Split:
    low = octets_of_nibbles(words(blocks, 48, 176), 4)
    return by_block(low, blocks_of_bits(words(blocks, 16, 48))), _k_scales(blocks)


def _q6_k(blocks: Blocks) -> Split:
    low = octets_of_nibbles(words(blocks, 0, 128), 2)
    high = blocks_of_crumbs(words(blocks, 128, 192))
    return by_block(low, high), np.ascontiguousarray(blocks[:, 192:])


def _q3_k(blocks: Blocks) -> Split:
    low = blocks_of_crumbs(words(blocks, 32, 96))
    high = blocks_of_bits(words(blocks, 0, 32))
    return by_block(low, high), in_turns(blocks[:, 96:108], blocks[:, 108:])


def _q2_k(blocks: Blocks) -> Split:
    scales = np.concatenate((blocks[:, :16], blocks[:, 80:]), 1)
    return by_block(blocks_of_crumbs(words(blocks, 16, 80))), scales


def _iq4_xs(blocks: Blocks) -> Split:
    low = octets_of_nibbles(words(blocks, 8, 136), 8)
    return by_block(low), np.ascontiguousarray(blocks[:, :8])


SPLITTERS: dict[str, Callable[[Blocks], Split]] = {
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
assert SPLITTERS.keys() <= BY_NAME.keys(), "each has its layout"
