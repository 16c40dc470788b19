"""Kernels of the host that go element by element: arithmetic, questions, choices, dtypes."""

from typing import Any

import numpy as np

from py_runtime.base.shapes import Dims
from py_runtime.pte.host_rules import (
    Function,
    as_one_dtype,
    joint_dims,
    no_dims,
    of_dtype,
    same_dims,
)
from py_runtime.pte.kernels import (
    FLAG,
    IGNORED,
    INTS,
    MAYBE_NUMBER,
    NUMBER,
    REAL,
    TENSOR,
    WHOLE,
    WORD,
    Array,
    HostKernel,
)


def _of_one(function: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array) -> Array:
        return np.asarray(function(x.astype(dtype)))

    return HostKernel((TENSOR,), same_dims, compute)


def _asked_of_one(function: Function) -> HostKernel:
    def compute(dtype: np.dtype, x: Array) -> Array:
        return np.asarray(function(x)).astype(dtype)

    return HostKernel((TENSOR,), same_dims, compute)


def _of_two(function: Function, second: str = TENSOR) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, y: Array | float) -> Array:
        return np.asarray(function(x.astype(dtype), np.asarray(y).astype(dtype)))

    return HostKernel((TENSOR, second), joint_dims, compute)


def _sum_kernel(sign: int, second: str = TENSOR) -> HostKernel:
    """Return the kernel of x ± alpha · y."""

    def compute(dtype: np.dtype, x: Array, y: Array | float, alpha: float) -> Array:
        more = np.asarray(y).astype(dtype) * of_dtype(dtype, alpha)
        return np.asarray(x.astype(dtype) + more if sign > 0 else x.astype(dtype) - more)

    return HostKernel((TENSOR, second, NUMBER), joint_dims, compute)


def _asked_of_two(function: Function, second: str = TENSOR) -> HostKernel:
    def compute(dtype: np.dtype, x: Array, y: Array | float) -> Array:
        return np.asarray(function(*as_one_dtype(x, y))).astype(dtype)

    return HostKernel((TENSOR, second), joint_dims, compute)


def _divide(dtype: np.dtype, x: Array, y: Array | float, mode: str | None = None) -> Array:
    a, b = as_one_dtype(x, y)
    if mode is None:
        return np.asarray(a.astype(dtype) / b.astype(dtype))
    if mode == "floor":
        return np.asarray(np.floor_divide(a, b)).astype(dtype)
    if a.dtype.kind == "f":
        return np.asarray(np.trunc(a / b)).astype(dtype)
    signs = np.sign(a) * np.sign(b)
    return np.asarray(signs * (np.abs(a) // np.abs(b))).astype(dtype)


def _clamp(dtype: np.dtype, x: Array, least: float | None, most: float | None) -> Array:
    x = x.astype(dtype)
    x = x if least is None else np.maximum(x, of_dtype(dtype, least))
    return x if most is None else np.minimum(x, of_dtype(dtype, most))


def _chosen(dtype: np.dtype, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition.astype(bool), x.astype(dtype), y.astype(dtype))


def _fill(dtype: np.dtype, x: Array, mask: Array, value: float) -> Array:
    return np.where(mask, of_dtype(dtype, value), x.astype(dtype))


def _convert(dtype: np.dtype, x: Array, *layout: Any) -> Array:
    return x.astype(dtype)


def _quantise(
    dtype: np.dtype, x: Array, scale: float, zero: int, least: int, most: int, *dtypes: Any
) -> Array:
    """Quantise as torch does: by the reciprocal in float32, half to even."""
    steps: Array = np.rint(x.astype(np.float32) * np.float32(np.divide(1.0, scale))) + zero
    return np.asarray(np.clip(steps, least, most)).astype(dtype)


def _dequantise(dtype: np.dtype, x: Array, scale: float, zero: int, *others: Any) -> Array:
    values: Array = (x.astype(np.float32) - np.float32(zero)) * np.float32(scale)
    return values.astype(dtype)


def _stated_dims(size: tuple[int, ...], *values: Any) -> Dims | None:
    return size if all(each >= 0 for each in size) else None


ELEMENTWISE = {
    "aten::scalar_tensor.out": HostKernel((NUMBER,), no_dims, of_dtype),
    "aten::full.out": HostKernel(
        (INTS, NUMBER), _stated_dims, lambda dtype, size, value: np.full(size, value).astype(dtype)
    ),
    "aten::full_like.out": HostKernel(
        (TENSOR, NUMBER, IGNORED),
        same_dims,
        lambda dtype, x, value, layout: np.full(x.shape, value).astype(dtype),
    ),
    # Arithmetic.
    "aten::add.out": _sum_kernel(1),
    "aten::add.Scalar_out": _sum_kernel(1, NUMBER),
    "aten::sub.out": _sum_kernel(-1),
    "aten::sub.Scalar_out": _sum_kernel(-1, NUMBER),
    "aten::mul.out": _of_two(np.multiply),
    "aten::mul.Scalar_out": _of_two(np.multiply, NUMBER),
    "aten::div.out": HostKernel((TENSOR, TENSOR), joint_dims, _divide),
    "aten::div.Scalar_out": HostKernel((TENSOR, NUMBER), joint_dims, _divide),
    "aten::div.out_mode": HostKernel((TENSOR, TENSOR, WORD), joint_dims, _divide),
    "aten::pow.Tensor_Scalar_out": _of_two(np.power, NUMBER),
    "aten::pow.Tensor_Tensor_out": _of_two(np.power),
    "aten::maximum.out": _of_two(np.maximum),
    "aten::minimum.out": _of_two(np.minimum),
    "aten::clamp.out": HostKernel((TENSOR, MAYBE_NUMBER, MAYBE_NUMBER), same_dims, _clamp),
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
    "aten::where.self_out": HostKernel((TENSOR, TENSOR, TENSOR), joint_dims, _chosen),
    "aten::masked_fill.Scalar_out": HostKernel((TENSOR, TENSOR, NUMBER), joint_dims, _fill),
    # Other dtypes.
    "aten::clone.out": HostKernel((TENSOR, IGNORED), same_dims, _convert),
    "aten::_to_copy.out": HostKernel((TENSOR, FLAG, IGNORED), same_dims, _convert),
    "dim_order_ops::_to_dim_order_copy.out": HostKernel(
        (TENSOR, FLAG, IGNORED), same_dims, _convert
    ),
    "dim_order_ops::_clone_dim_order.out": HostKernel((TENSOR, FLAG, IGNORED), same_dims, _convert),
    "quantized_decomposed::quantize_per_tensor.out": HostKernel(
        (TENSOR, REAL, WHOLE, WHOLE, WHOLE, IGNORED), same_dims, _quantise
    ),
    "quantized_decomposed::dequantize_per_tensor.out": HostKernel(
        (TENSOR, REAL, WHOLE, WHOLE, WHOLE, IGNORED, IGNORED), same_dims, _dequantise
    ),
}
