"""Kernels outside the delegate that the host computes, by numpy.

ExecuTorch's exporter leaves these beside a model that it delegates otherwise: how it takes `where`,
`masked_fill`, attention and norms apart brings them in after ops were chosen for the delegate, some
ops the delegate lacks for some dtypes and dims, and _quantised models have their ends there.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from py_runtime.base.shapes import Dims
from py_runtime.pte.container import HostTensor
from py_runtime.pte.kernels import (
    AXIS,
    FLAG,
    IGNORED,
    INTS,
    MAYBE_AXES,
    MAYBE_AXIS,
    MAYBE_NUMBER,
    NUMBER,
    REAL,
    TENSOR,
    TENSORS,
    WHOLE,
    WORD,
    Array,
    HostKernel,
)

Function = Callable[..., Any]
Axes = tuple[int, ...] | None

# Dims of what comes out ------------------------------------------------------------------------


def _no_dims(*values: Any) -> Dims:
    return ()


def _same_dims(x: HostTensor, *values: Any) -> Dims:
    return x.dims


def _joint_dims(*values: Any) -> Dims | None:
    """Of tensors that stretch to each other's dims."""
    try:
        return np.broadcast_shapes(*(v.dims for v in values if isinstance(v, HostTensor)))
    except ValueError:
        return None


def _dims_without(x: HostTensor, axes: Axes | int, keeps: bool, *values: Any) -> Dims:
    rank = len(x.dims)
    listed = (axes,) if isinstance(axes, int) else axes
    gone = {axis % rank for axis in listed} if listed else set(range(rank))
    kept = [1 if axis in gone else size for axis, size in enumerate(x.dims)]
    return tuple(size for axis, size in enumerate(kept) if keeps or axis not in gone)


def _top_dims(x: HostTensor, count: int, axis: int, *values: Any) -> Dims | None:
    if not x.dims or not 0 <= count <= x.dims[axis]:
        return None
    dims = list(x.dims)
    dims[axis] = count
    return tuple(dims)


def _stated_dims(size: tuple[int, ...], *values: Any) -> Dims | None:
    return size if all(each >= 0 for each in size) else None


# Numbers and dtypes as torch has them ----------------------------------------------------------


def _of_dtype(dtype: np.dtype, value: float) -> Array:
    return np.asarray(value).astype(dtype)


def _as_one_dtype(a: Array, b: Array | float) -> tuple[Array, Array]:
    """As torch promotes them: floats before integers, and a number bends to a tensor's dtype."""
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


def _wide(x: Array) -> Array:
    """Sums of many floats lose nothing on the way."""
    return x.astype(np.float64) if x.dtype.kind == "f" else x


# Element by element ----------------------------------------------------------------------------


def _of_one(function: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array) -> Array:
        return np.asarray(function(x.astype(dtype)))

    return HostKernel((TENSOR,), _same_dims, compute)


def _asked_of_one(function: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array) -> Array:
        return np.asarray(function(x)).astype(dtype)

    return HostKernel((TENSOR,), _same_dims, compute)


def _of_two(function: Function, second: str = TENSOR) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, y: Array | float) -> Array:
        return np.asarray(function(x.astype(dtype), np.asarray(y).astype(dtype)))

    return HostKernel((TENSOR, second), _joint_dims, compute)


def _summed(sign: int, second: str = TENSOR) -> HostKernel:
    """x ± alpha · y"""

    def compute(dtype: np.dtype, x: Array, y: Array | float, alpha: float) -> Array:
        more = np.asarray(y).astype(dtype) * _of_dtype(dtype, alpha)
        return np.asarray(x.astype(dtype) + more if sign > 0 else x.astype(dtype) - more)

    return HostKernel((TENSOR, second, NUMBER), _joint_dims, compute)


def _asked_of_two(function: Function, second: str = TENSOR) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, y: Array | float) -> Array:
        return np.asarray(function(*_as_one_dtype(x, y))).astype(dtype)

    return HostKernel((TENSOR, second), _joint_dims, compute)


def _divided(dtype: np.dtype, x: Array, y: Array | float, mode: str | None = None) -> Array:
    a, b = _as_one_dtype(x, y)
    if mode is None:
        return np.asarray(a.astype(dtype) / b.astype(dtype))
    if mode == "floor":
        return np.asarray(np.floor_divide(a, b)).astype(dtype)
    if a.dtype.kind == "f":
        return np.asarray(np.trunc(a / b)).astype(dtype)
    signs = np.sign(a) * np.sign(b)
    return np.asarray(signs * (np.abs(a) // np.abs(b))).astype(dtype)


def _clamped(dtype: np.dtype, x: Array, least: float | None, most: float | None) -> Array:
    x = x.astype(dtype)
    x = x if least is None else np.maximum(x, _of_dtype(dtype, least))
    return x if most is None else np.minimum(x, _of_dtype(dtype, most))


def _chosen(dtype: np.dtype, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition.astype(bool), x.astype(dtype), y.astype(dtype))


def _filled(dtype: np.dtype, x: Array, mask: Array, value: float) -> Array:
    return np.where(mask, _of_dtype(dtype, value), x.astype(dtype))


def _converted(dtype: np.dtype, x: Array, *layout: Any) -> Array:
    return x.astype(dtype)


def _quantised(
    dtype: np.dtype, x: Array, scale: float, zero: int, least: int, most: int, *dtypes: Any
) -> Array:
    """As torch computes it: by the reciprocal in float32, half to even."""
    steps: Array = np.rint(x.astype(np.float32) * np.float32(np.divide(1.0, scale))) + zero
    return np.asarray(np.clip(steps, least, most)).astype(dtype)


def _dequantised(dtype: np.dtype, x: Array, scale: float, zero: int, *others: Any) -> Array:
    values: Array = (x.astype(np.float32) - np.float32(zero)) * np.float32(scale)
    return values.astype(dtype)


# Over dims -------------------------------------------------------------------------------------


def _over_axes(function: Function, *more: str) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, axes: Axes, keeps: bool, *dtypes: Any) -> Array:
        return np.asarray(function(x, axis=axes or None, keepdims=keeps)).astype(dtype)

    return HostKernel((TENSOR, MAYBE_AXES, FLAG, *more), _dims_without, compute)


def _over_all(function: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array) -> Array:
        return np.asarray(function(x)).astype(dtype)

    return HostKernel((TENSOR,), _no_dims, compute)


def _place_of(function: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, axis: int | None, keeps: bool) -> Array:
        return np.asarray(function(x, axis=axis, keepdims=keeps)).astype(dtype)

    return HostKernel((TENSOR, MAYBE_AXIS, FLAG), _dims_without, compute)


def _value_and_place(most: Function, place: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, axis: int, keeps: bool) -> tuple[Array, Array]:
        how = {"axis": axis, "keepdims": keeps}
        return np.asarray(most(x, **how)), np.asarray(place(x, **how))

    return HostKernel((TENSOR, AXIS, FLAG), _dims_without, compute, outputs=2)


def _top(
    dtype: np.dtype, x: Array, count: int, axis: int, largest: bool, ordered: bool
) -> tuple[Array, Array]:
    places = np.take(_order(x, axis, largest), np.arange(count), axis=axis)
    return np.take_along_axis(x, places, axis=axis), places


def _sorted(dtype: np.dtype, x: Array, axis: int, descends: bool) -> tuple[Array, Array]:
    places = _order(x, axis, descends)
    return np.take_along_axis(x, places, axis=axis), places


def _order(x: Array, axis: int, descends: bool) -> Array:
    """Of equals the first comes first; what is no number counts as the largest."""
    if not descends:
        return np.argsort(x, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    order: Array = x.shape[axis] - 1 - np.flip(backwards, axis)
    return order


def _soft(dtype: np.dtype, x: Array, axis: int, halves: bool, in_logs: bool = False) -> Array:
    above = _wide(x) - _wide(x).max(axis=axis, keepdims=True)
    total = np.exp(above).sum(axis=axis, keepdims=True)
    shares: Array = above - np.log(total) if in_logs else np.exp(above) / total
    return shares.astype(dtype)


def _running_sum(dtype: np.dtype, x: Array, axis: int, *dtypes: Any) -> Array:
    given = _wide(x) if dtype.kind == "f" else x.astype(dtype)
    return np.asarray(np.cumsum(given, axis=axis)).astype(dtype)


# By places -------------------------------------------------------------------------------------


def _looked_up_dims(x: HostTensor, indices: list[HostTensor | None]) -> Dims | None:
    """How many elements a mask picks depends on data: none is taken."""
    if len(indices) > len(x.dims) or any(i is not None and i.dtype == bool for i in indices):
        return None
    taken = [axis for axis, index in enumerate(indices) if index is not None]
    common = _joint_dims(*indices)
    if not taken or common is None:
        return x.dims if not taken else None
    first, last = taken[0], taken[-1]
    if len(taken) == last - first + 1:  # side by side: what they give stands in their place
        return (*x.dims[:first], *common, *x.dims[last + 1 :])
    return (*common, *(size for axis, size in enumerate(x.dims) if axis not in taken))


def _key(indices: list[Array | None]) -> tuple[Any, ...]:
    return tuple(slice(None) if index is None else index for index in indices)


def _looked_up(dtype: np.dtype, x: Array, indices: list[Array | None]) -> Array:
    return np.asarray(x[_key(indices)]).astype(dtype)


def _put(
    dtype: np.dtype, x: Array, indices: list[Array | None], values: Array, adds: bool
) -> Array:
    out, key = x.astype(dtype), _key(indices)
    if adds:
        np.add.at(out, key, values.astype(dtype))
    else:
        out[key] = values
    return out


def _rows_dims(weight: HostTensor, indices: HostTensor, *values: Any) -> Dims | None:
    return (*indices.dims, weight.dims[1]) if len(weight.dims) == 2 else None


def _rows(dtype: np.dtype, weight: Array, indices: Array, *training: Any) -> Array:
    found: Array = weight[indices]
    return found.astype(dtype)


HOST_KERNELS = {
    "aten::scalar_tensor.out": HostKernel((NUMBER,), _no_dims, _of_dtype),
    "aten::full.out": HostKernel(
        (INTS, NUMBER), _stated_dims, lambda dtype, size, value: np.full(size, value).astype(dtype)
    ),
    "aten::full_like.out": HostKernel(
        (TENSOR, NUMBER, IGNORED),
        _same_dims,
        lambda dtype, x, value, layout: np.full(x.shape, value).astype(dtype),
    ),
    # Arithmetic.
    "aten::add.out": _summed(1),
    "aten::add.Scalar_out": _summed(1, NUMBER),
    "aten::sub.out": _summed(-1),
    "aten::sub.Scalar_out": _summed(-1, NUMBER),
    "aten::mul.out": _of_two(np.multiply),
    "aten::mul.Scalar_out": _of_two(np.multiply, NUMBER),
    "aten::div.out": HostKernel((TENSOR, TENSOR), _joint_dims, _divided),
    "aten::div.Scalar_out": HostKernel((TENSOR, NUMBER), _joint_dims, _divided),
    "aten::div.out_mode": HostKernel((TENSOR, TENSOR, WORD), _joint_dims, _divided),
    "aten::pow.Tensor_Scalar_out": _of_two(np.power, NUMBER),
    "aten::pow.Tensor_Tensor_out": _of_two(np.power),
    "aten::maximum.out": _of_two(np.maximum),
    "aten::minimum.out": _of_two(np.minimum),
    "aten::clamp.out": HostKernel((TENSOR, MAYBE_NUMBER, MAYBE_NUMBER), _same_dims, _clamped),
    "aten::abs.out": _of_one(np.abs),
    "aten::neg.out": _of_one(np.negative),
    "aten::reciprocal.out": _of_one(np.reciprocal),
    "aten::sqrt.out": _of_one(np.sqrt),
    "aten::rsqrt.out": _of_one(lambda x: 1 / np.sqrt(x)),
    "aten::exp.out": _of_one(np.exp),
    "aten::log.out": _of_one(np.log),
    "aten::log1p.out": _of_one(np.log1p),
    "aten::expm1.out": _of_one(np.expm1),
    "aten::log2.out": _of_one(np.log2),
    "aten::log10.out": _of_one(np.log10),
    "aten::sin.out": _of_one(np.sin),
    "aten::cos.out": _of_one(np.cos),
    "aten::tanh.out": _of_one(np.tanh),
    "aten::sigmoid.out": _of_one(lambda x: 1 / (1 + np.exp(-x))),
    "aten::relu.out": _of_one(lambda x: np.maximum(x, 0)),
    "aten::floor.out": _of_one(np.floor),
    "aten::ceil.out": _of_one(np.ceil),
    "aten::trunc.out": _of_one(np.trunc),
    "aten::round.out": _of_one(np.round),
    "aten::sign.out": _of_one(np.sign),
    # Questions and choices.
    **{
        f"aten::{name}.{form}_out": _asked_of_two(function, second)
        for name, function in {
            "eq": np.equal,
            "ne": np.not_equal,
            "lt": np.less,
            "le": np.less_equal,
            "gt": np.greater,
            "ge": np.greater_equal,
        }.items()
        for form, second in (("Tensor", TENSOR), ("Scalar", NUMBER))
    },
    "aten::logical_and.out": _asked_of_two(np.logical_and),
    "aten::logical_or.out": _asked_of_two(np.logical_or),
    "aten::logical_xor.out": _asked_of_two(np.logical_xor),
    "aten::bitwise_and.Tensor_out": _of_two(np.bitwise_and),
    "aten::bitwise_or.Tensor_out": _of_two(np.bitwise_or),
    "aten::bitwise_xor.Tensor_out": _of_two(np.bitwise_xor),
    "aten::logical_not.out": _asked_of_one(np.logical_not),
    "aten::bitwise_not.out": _asked_of_one(np.invert),
    "aten::isnan.out": _asked_of_one(np.isnan),
    "aten::isinf.out": _asked_of_one(np.isinf),
    "aten::where.self_out": HostKernel((TENSOR, TENSOR, TENSOR), _joint_dims, _chosen),
    "aten::masked_fill.Scalar_out": HostKernel((TENSOR, TENSOR, NUMBER), _joint_dims, _filled),
    # Over dims.
    "aten::sum.IntList_out": _over_axes(lambda x, **how: _wide(x).sum(**how), IGNORED),
    "aten::mean.out": _over_axes(lambda x, **how: _wide(x).mean(**how), IGNORED),
    "aten::amax.out": _over_axes(np.amax),
    "aten::amin.out": _over_axes(np.amin),
    "aten::any.dims_out": _over_axes(np.any),
    "aten::any.out": HostKernel(
        (TENSOR, AXIS, FLAG),
        _dims_without,
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
    "aten::sort.values": HostKernel((TENSOR, AXIS, FLAG), _same_dims, _sorted, outputs=2),
    "aten::cumsum.out": HostKernel((TENSOR, AXIS, IGNORED), _same_dims, _running_sum),
    "aten::_softmax.out": HostKernel((TENSOR, AXIS, FLAG), _same_dims, _soft),
    "aten::_log_softmax.out": HostKernel(
        (TENSOR, AXIS, FLAG),
        _same_dims,
        lambda dtype, x, axis, halves: _soft(dtype, x, axis, halves, in_logs=True),
    ),
    # By places.
    "aten::index.Tensor_out": HostKernel((TENSOR, TENSORS), _looked_up_dims, _looked_up),
    "aten::index_put.out": HostKernel((TENSOR, TENSORS, TENSOR, FLAG), _same_dims, _put),
    "aten::embedding.out": HostKernel((TENSOR, TENSOR, IGNORED, FLAG, FLAG), _rows_dims, _rows),
    # Other dtypes.
    "aten::clone.out": HostKernel((TENSOR, IGNORED), _same_dims, _converted),
    "aten::_to_copy.out": HostKernel((TENSOR, FLAG, IGNORED), _same_dims, _converted),
    "dim_order_ops::_to_dim_order_copy.out": HostKernel(
        (TENSOR, FLAG, IGNORED), _same_dims, _converted
    ),
    "dim_order_ops::_clone_dim_order.out": HostKernel(
        (TENSOR, FLAG, IGNORED), _same_dims, _converted
    ),
    "quantized_decomposed::quantize_per_tensor.out": HostKernel(
        (TENSOR, REAL, WHOLE, WHOLE, WHOLE, IGNORED), _same_dims, _quantised
    ),
    "quantized_decomposed::dequantize_per_tensor.out": HostKernel(
        (TENSOR, REAL, WHOLE, WHOLE, WHOLE, IGNORED, IGNORED), _same_dims, _dequantised
    ),
}
