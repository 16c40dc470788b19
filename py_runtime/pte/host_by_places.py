"""Kernels of the host that look elements up, and put some, by their places."""

from typing import Any

import numpy as np

from py_runtime.base.shapes import Dims
from py_runtime.pte.container import HostTensor
from py_runtime.pte.host_rules import joint_dims, same_dims
from py_runtime.pte.kernels import FLAG, IGNORED, TENSOR, TENSORS, Array, HostKernel


def _looked_up_dims(x: HostTensor, indices: list[HostTensor | None]) -> Dims | None:
    """Return the dims of the result; None for a mask, whose number of elements depends on data."""
    if len(indices) > len(x.dims) or any(i is not None and i.dtype == bool for i in indices):
        return None
    taken = [axis for axis, index in enumerate(indices) if index is not None]
    common = joint_dims(*indices)
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


BY_PLACES = {
    "aten::index.Tensor_out": HostKernel((TENSOR, TENSORS), _looked_up_dims, _looked_up),
    "aten::index_put.out": HostKernel((TENSOR, TENSORS, TENSOR, FLAG), same_dims, _put),
    "aten::embedding.out": HostKernel((TENSOR, TENSOR, IGNORED, FLAG, FLAG), _rows_dims, _rows),
}
