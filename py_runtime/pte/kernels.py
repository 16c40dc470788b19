"""Kernels outside the delegate that the host computes.

ExecuTorch's exporter leaves these beside a model that it delegates otherwise: how it takes `where`,
`masked_fill`, attention and norms apart brings them in after ops were chosen for the delegate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from py_runtime.base.shapes import Dims
from py_runtime.pte.container import EValue, HostTensor

Array = np.ndarray
TENSOR, NUMBER, AXIS, FLAG = "tensor", "number", "axis", "flag"


@dataclass(frozen=True)
class HostKernel:
    """Arguments that may differ from call to call come first, then fixed ones; in a file's call
    the output follows, twice."""

    live: tuple[str, ...]  # the kind of each
    fixed: tuple[str, ...]
    dims: Callable[..., Dims]  # of the output, from the arguments in the file
    compute: Callable[..., Array]  # from the output's dtype and the arguments of a call

    def takes(self, values: Sequence[EValue], out: EValue) -> bool:
        """Whether the arguments and the output that a file has for it are such."""
        kinds = (*self.live, *self.fixed)
        return (
            len(values) == len(kinds)
            and all(_is_of(kind, value, values) for kind, value in zip(kinds, values, strict=True))
            and isinstance(out, HostTensor)
            and out.dims == self.dims(*values)
        )


def _is_of(kind: str, value: EValue, values: Sequence[EValue]) -> bool:
    if kind == TENSOR:
        return isinstance(value, HostTensor)
    if kind == AXIS:  # of the first argument
        rank = len(values[0].dims) if isinstance(values[0], HostTensor) else 0
        return type(value) is int and -rank <= value < rank
    if kind == FLAG:
        return isinstance(value, bool)
    return value is None or isinstance(value, bool | int | float)  # null: one that callers pass


def _no_dims(*values: EValue) -> Dims:
    return ()


def _same_dims(x: HostTensor, *values: EValue) -> Dims:
    return x.dims


def _dims_without(x: HostTensor, axis: int, keeps: bool) -> Dims:
    axis %= len(x.dims)
    return (*x.dims[:axis], *([1] if keeps else []), *x.dims[axis + 1 :])


def _scalar_tensor(dtype: np.dtype, value: float) -> Array:
    return np.asarray(value).astype(dtype)


def _add_scalar(dtype: np.dtype, x: Array, value: float, alpha: float) -> Array:
    more = _scalar_tensor(dtype, value) * _scalar_tensor(dtype, alpha)
    return np.asarray(x.astype(dtype) + more)


def _mul_scalar(dtype: np.dtype, x: Array, value: float) -> Array:
    return np.asarray(x.astype(dtype) * _scalar_tensor(dtype, value))


def _any(dtype: np.dtype, x: Array, axis: int, keeps: bool) -> Array:
    return np.asarray(x.any(axis=axis, keepdims=keeps)).astype(dtype)


HOST_KERNELS = {
    "aten::scalar_tensor.out": HostKernel((NUMBER,), (), _no_dims, _scalar_tensor),
    "aten::add.Scalar_out": HostKernel((TENSOR, NUMBER, NUMBER), (), _same_dims, _add_scalar),
    "aten::mul.Scalar_out": HostKernel((TENSOR, NUMBER), (), _same_dims, _mul_scalar),
    "aten::any.out": HostKernel((TENSOR,), (AXIS, FLAG), _dims_without, _any),
}
