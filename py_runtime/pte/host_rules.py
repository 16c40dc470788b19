"""Rules that kernels of the host share: the dims of their results, and dtypes as torch has them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from py_runtime.base.shapes import Dims
from py_runtime.pte.container import HostTensor
from py_runtime.pte.kernels import Array

Function = Callable[..., Any]
Axes = tuple[int, ...] | None

# Dims of what comes out ------------------------------------------------------------------------


def no_dims(*values: Any) -> Dims:
    """Return the dims of a single number."""
    return ()


def same_dims(x: HostTensor, *values: Any) -> Dims:
    """Return the dims of the first tensor."""
    return x.dims


def joint_dims(*values: Any) -> Dims | None:
    """Return the dims of tensors that broadcast together; None where they do not."""
    try:
        return np.broadcast_shapes(*(v.dims for v in values if isinstance(v, HostTensor)))
    except ValueError:
        return None


def dims_without(x: HostTensor, axes: Axes | int, keeps: bool, *values: Any) -> Dims:
    """Return the dims after reducing these axes, or all; reduced ones that are kept are 1 long."""
    rank = len(x.dims)
    listed = (axes,) if isinstance(axes, int) else axes
    gone = {axis % rank for axis in listed} if listed else set(range(rank))
    kept = [1 if axis in gone else size for axis, size in enumerate(x.dims)]
    return tuple(size for axis, size in enumerate(kept) if keeps or axis not in gone)


# Numbers and dtypes as torch has them ----------------------------------------------------------


def of_dtype(dtype: np.dtype, value: float) -> Array:
    """Return a number as an array without dims."""
    return np.asarray(value).astype(dtype)


def as_one_dtype(a: Array, b: Array | float) -> tuple[Array, Array]:
    """Promote as torch does: floats before integers, and a number bends to a tensor's dtype."""
    if isinstance(b, np.ndarray):
        floats = [each.dtype for each in (a, b) if each.dtype.kind == "f"]
        dtype = np.result_type(*floats) if floats else np.result_type(a.dtype, b.dtype)
    elif (
        a.dtype.kind == "f"
        or (a.dtype.kind != "b" and isinstance(b, int))
        or (a.dtype.kind == "b" and isinstance(b, bool))
    ):
        dtype = a.dtype
    else:
        dtype = np.dtype(np.int64 if isinstance(b, int) else np.float32)
    return a.astype(dtype), np.asarray(b).astype(dtype)


def wide(x: Array) -> Array:
    """Widen floats, so that sums of many lose nothing on the way."""
    return x.astype(np.float64) if x.dtype.kind == "f" else x
