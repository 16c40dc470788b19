"""The values that buffers hold, on the host: plain ones, and blocks of keys and values."""

import numpy as np

from py_runtime.base.dtypes import CACHED_BLOCK, F16, Q4, Q8, DType

LARGEST = 65504.0  # of f16; what is larger becomes it
SHIFTS = np.arange(0, 8, 2, dtype=np.uint8)[:, None]  # of the low bits of every eighth value


def held_values(dtype: DType, data: np.ndarray) -> np.ndarray:
    """Return the values that bytes of a buffer hold, as the host's, flat."""
    held = data.view(dtype.gpu)
    if dtype is Q8:
        low = (held["low"][:, None, :] >> SHIFTS & 3).reshape(-1, CACHED_BLOCK)
        codes = held["high"].astype(np.uint16) << 2 | low
        least, step = _as_floats(held["least"]), _as_floats(held["range"]) / np.float32(1023)
        values: np.ndarray = codes * step + least
        return values.reshape(-1)
    if dtype is Q4:
        codes = np.concatenate([held["codes"] & 15, held["codes"] >> 4], axis=-1)
        values = codes * _as_floats(held["step"]) + _as_floats(held["least"])
        return values.reshape(-1)
    return held.astype(dtype.host, copy=False).reshape(-1)


def as_held(dtype: DType, values: np.ndarray) -> np.ndarray:
    """Return the bytes that hold values in a buffer, rounded once: the way back."""
    if dtype.block == 1:
        if dtype is F16:
            values = values.clip(-LARGEST, LARGEST)
        return np.ascontiguousarray(values, dtype.gpu).reshape(-1).view(np.uint8)
    blocks = values.reshape(-1, CACHED_BLOCK).clip(-LARGEST, LARGEST)
    held = np.empty(len(blocks), dtype.gpu)
    least, most = blocks.min(-1), blocks.max(-1)
    held["least"] = least
    if dtype is Q8:
        held["range"] = np.minimum(most - least, np.float32(LARGEST))
        codes = _codes(blocks, held["least"], _as_floats(held["range"])[:, 0] / 1023, 1023)
        held["high"] = codes >> 2
        low = (codes & 3).astype(np.uint8).reshape(-1, len(SHIFTS), 8) << SHIFTS
        held["low"] = np.bitwise_or.reduce(low, axis=1)
    else:
        held["step"] = (most - least) / 15
        codes = _codes(blocks, held["least"], _as_floats(held["step"])[:, 0], 15).astype(np.uint8)
        held["codes"] = codes[:, : CACHED_BLOCK // 2] | codes[:, CACHED_BLOCK // 2 :] << 4
    return held.view(np.uint8)


def _codes(blocks: np.ndarray, least: np.ndarray, step: np.ndarray, most: int) -> np.ndarray:
    """Return the steps of each value above the least: u16 [blocks, 32]."""
    steps = (blocks - _as_floats(least)) / np.maximum(step, np.float32(1e-33))[:, None]
    codes: np.ndarray = np.rint(steps).clip(0, most).astype(np.uint16)
    return codes


def _as_floats(held: np.ndarray) -> np.ndarray:
    """Return halves of blocks as f32 [blocks, 1]."""
    return held.astype(np.float32)[:, None]
