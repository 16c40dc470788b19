"""Kernels of the host that reduce or sort whole dims: sums, maxima, orders, softmax."""

from typing import Any

import numpy as np

from py_runtime.base.shapes import Dims
from py_runtime.pte.container import HostTensor
from py_runtime.pte.host_rules import (
    Axes,
    Function,
    dims_without,
    no_dims,
    same_dims,
    wide,
)
from py_runtime.pte.kernels import (
    AXIS,
    FLAG,
    IGNORED,
    MAYBE_AXES,
    MAYBE_AXIS,
    TENSOR,
    WHOLE,
    Array,
    HostKernel,
)


def _over_axes(function: Function, *more: str) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, axes: Axes, keeps: bool, *dtypes: Any) -> Array:
        return np.asarray(function(x, axis=axes or None, keepdims=keeps)).astype(dtype)

    return HostKernel((TENSOR, MAYBE_AXES, FLAG, *more), dims_without, compute)


def _over_all(function: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array) -> Array:
        return np.asarray(function(x)).astype(dtype)

    return HostKernel((TENSOR,), no_dims, compute)


def _place_of(function: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, axis: int | None, keeps: bool) -> Array:
        return np.asarray(function(x, axis=axis, keepdims=keeps)).astype(dtype)

    return HostKernel((TENSOR, MAYBE_AXIS, FLAG), dims_without, compute)


def _value_and_place(most: Function, place: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, axis: int, keeps: bool) -> tuple[Array, Array]:
        how = {"axis": axis, "keepdims": keeps}
        return np.asarray(most(x, **how)), np.asarray(place(x, **how))

    return HostKernel((TENSOR, AXIS, FLAG), dims_without, compute, outputs=2)


def _top_dims(x: HostTensor, count: int, axis: int, *values: Any) -> Dims | None:
    if not x.dims or not 0 <= count <= x.dims[axis]:
        return None
    dims = list(x.dims)
    dims[axis] = count
    return tuple(dims)


def _top(
    dtype: np.dtype, x: Array, count: int, axis: int, largest: bool, ordered: bool
) -> tuple[Array, Array]:
    places = np.take(_order(x, axis, largest), np.arange(count), axis=axis)
    return np.take_along_axis(x, places, axis=axis), places


def _sort(dtype: np.dtype, x: Array, axis: int, descends: bool) -> tuple[Array, Array]:
    places = _order(x, axis, descends)
    return np.take_along_axis(x, places, axis=axis), places


def _order(x: Array, axis: int, descends: bool) -> Array:
    """Sort stably; NaN counts as the largest."""
    if not descends:
        return np.argsort(x, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    order: Array = x.shape[axis] - 1 - np.flip(backwards, axis)
    return order


def _soft(dtype: np.dtype, x: Array, axis: int, halves: bool, in_logs: bool = False) -> Array:
    above = wide(x) - wide(x).max(axis=axis, keepdims=True)
    total = np.exp(above).sum(axis=axis, keepdims=True)
    shares: Array = above - np.log(total) if in_logs else np.exp(above) / total
    return shares.astype(dtype)


def _running_sum(dtype: np.dtype, x: Array, axis: int, *dtypes: Any) -> Array:
    given = wide(x) if dtype.kind == "f" else x.astype(dtype)
    return np.asarray(np.cumsum(given, axis=axis)).astype(dtype)


OVER_DIMS = {
    "aten::sum.IntList_out": _over_axes(lambda x, **how: wide(x).sum(**how), IGNORED),
    "aten::mean.out": _over_axes(lambda x, **how: wide(x).mean(**how), IGNORED),
    "aten::amax.out": _over_axes(np.amax),
    "aten::amin.out": _over_axes(np.amin),
    "aten::any.dims_out": _over_axes(np.any),
    "aten::any.out": HostKernel(
        (TENSOR, AXIS, FLAG),
        dims_without,
        lambda dtype, x, axis, keeps: np.asarray(x.any(axis=axis, keepdims=keeps)).astype(dtype),
    ),
    "aten::any.all_out": _over_all(np.any),
    "aten::argmax.out": _place_of(np.argmax),
    "aten::argmin.out": _place_of(np.argmin),
    "aten::max.dim_max": _value_and_place(np.amax, np.argmax),
    "aten::min.dim_min": _value_and_place(np.amin, np.argmin),
    "aten::max.unary_out": _over_all(np.amax),
    "aten::min.unary_out": _over_all(np.amin),
    "aten::topk.values": HostKernel((TENSOR, WHOLE, AXIS, FLAG, FLAG), _top_dims, _top, outputs=2),
    "aten::sort.values": HostKernel((TENSOR, AXIS, FLAG), same_dims, _sort, outputs=2),
    "aten::cumsum.out": HostKernel((TENSOR, AXIS, IGNORED), same_dims, _running_sum),
    "aten::_softmax.out": HostKernel((TENSOR, AXIS, FLAG), same_dims, _soft),
    "aten::_log_softmax.out": HostKernel(
        (TENSOR, AXIS, FLAG),
        same_dims,
        lambda dtype, x, axis, halves: _soft(dtype, x, axis, halves, in_logs=True),
    ),
}
