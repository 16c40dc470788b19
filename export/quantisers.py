"""Floats to stored weights, group by group, with scales that cost less than absmax ones do."""

import numpy as np

from export.errors import ExportError
from py_runtime.decoder.tensors import WeightKind
from py_runtime.program.weight_kinds import Q4GSW, pack_linear_scales, pack_nibbles

BLOCK = 32
# A smaller scale clips the largest value of a group and serves all others better, up to a point.
SHRINKS = np.linspace(0.72, 1.04, 17, dtype=np.float32)
ROWS_AT_ONCE = 1024  # keeps the search's copies small

Parts = dict[str, np.ndarray]  # "weight", "scales"


def quantise(kind: WeightKind, dense: np.ndarray, name: str) -> Parts:
    """dense: float32 [N, K] → the parts of a weight of this kind."""
    columns = dense.shape[1]
    if kind.name == "f32":
        return {"weight": np.ascontiguousarray(dense, np.float32)}
    if columns % kind.group_size:
        raise ExportError(
            f"'{name}' has {columns} columns, which is not a multiple of the group size "
            f"{kind.group_size}; choose another --group-size or --quant"
        )
    chunks = [
        QUANTISERS[kind.name](dense[at : at + ROWS_AT_ONCE].astype(np.float32), kind.group_size)
        for at in range(0, len(dense), ROWS_AT_ONCE)
    ]
    weight = np.concatenate([weight for weight, _ in chunks])
    scales = np.concatenate([scales for _, scales in chunks])
    if kind.name == Q4GSW:
        return {"weight": weight, "scales": pack_linear_scales(scales)}
    return {"weight": weight, "scales": scales}


def _group(dense: np.ndarray, group_size: int) -> np.ndarray:
    return dense.reshape(len(dense), -1, group_size)  # [N, G, group_size]


def _q4_symmetric(dense: np.ndarray, group_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantise to -8..7 with one scale for each group.

    The value of largest magnitude may sit at -8, so both signs are tried at every shrink, and the
    scale with the least squared error wins.
    """
    groups = _group(dense, group_size)
    extreme = np.take_along_axis(groups, np.abs(groups).argmax(-1, keepdims=True), -1)
    best_scale = np.zeros_like(extreme)
    best_error = np.full(extreme.shape, np.inf, np.float32)
    for shrink in SHRINKS:
        for steps in (-8.0, 7.0, -7.0):
            scale = extreme / steps * shrink
            error = ((_round_steps(groups, scale, -8, 7) * scale - groups) ** 2).sum(
                -1, keepdims=True
            )
            better = error < best_error
            best_scale = np.where(better, scale, best_scale)
            best_error = np.where(better, error, best_error)
    quantised = _round_steps(groups, best_scale, -8, 7).reshape(dense.shape)
    return pack_nibbles((quantised + 8).astype(np.uint8)), best_scale[..., 0].astype(np.float32)


def _q4_with_minimum(dense: np.ndarray, group_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantise to 0..15 with a scale and a minimum, both stored as float16 and fitted as stored."""
    groups = _group(dense, group_size)
    low, high = groups.min(-1, keepdims=True), groups.max(-1, keepdims=True)
    best = np.zeros((*low.shape[:2], 2), np.float16)
    best_error = np.full(low.shape, np.inf, np.float32)
    middle = (low + high) / 2
    for shrink in SHRINKS:
        half_range = (high - low) / 2 * shrink
        scale = (half_range * 2 / 15).astype(np.float16)
        minimum = (middle - half_range).astype(np.float16)
        values = _round_steps(groups - minimum, scale.astype(np.float32), 0, 15)
        restored = values * scale.astype(np.float32) + minimum.astype(np.float32)
        error = ((restored - groups) ** 2).sum(-1, keepdims=True)
        better = error < best_error
        best = np.where(better, np.concatenate((scale, minimum), -1), best)
        best_error = np.where(better, error, best_error)
    scale, minimum = np.split(best.astype(np.float32), 2, -1)
    quantised = _round_steps(groups - minimum, scale, 0, 15).reshape(dense.shape)
    return pack_nibbles(quantised.astype(np.uint8)), best


def _q8(dense: np.ndarray, group_size: int) -> tuple[np.ndarray, np.ndarray]:
    groups = _group(dense, group_size)
    scale = (np.abs(groups).max(-1, keepdims=True) / 127).astype(np.float16)
    quantised = _round_steps(groups, scale.astype(np.float32), -127, 127).reshape(dense.shape)
    return quantised.astype(np.int8), scale[..., 0]


def _round_steps(values: np.ndarray, scale: np.ndarray, low: int, high: int) -> np.ndarray:
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)
    return np.clip(np.rint(values * inverse), low, high)


QUANTISERS = {Q4GSW: _q4_symmetric, "q4_1": _q4_with_minimum, "q8_0": _q8}
