"""Conversion of callers' inputs into arrays that the GPU takes."""

from typing import Any

import numpy as np

from py_runtime.base.dtypes import I32, I64
from py_runtime.base.errors import InputError
from py_runtime.live.values import LiveTensor
from py_runtime.program import INT32_MAX, INT32_MIN


def as_array(index: int, given: Any) -> np.ndarray:
    """Convert an input to an array; InputError names the input."""
    try:
        return np.asarray(given)
    except (ValueError, TypeError) as error:
        raise InputError(f"input {index} is not an array: {error}") from None


def as_int(index: int, given: Any) -> int:
    """Convert an input to an int; InputError unless it is one integer."""
    array = as_array(index, given)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise InputError(f"input {index} is a SymInt and takes one integer, got {given!r}")
    return int(array.reshape(()))


def check_int32(where: str, array: np.ndarray) -> None:
    """Raise InputError if a value does not fit the GPU's int32; nothing wraps silently."""
    if array.dtype.itemsize < 4 or not array.size:
        return
    low, high = int(array.min()), int(array.max())
    if low < INT32_MIN or high > INT32_MAX:
        outside = low if low < INT32_MIN else high
        raise InputError(f"{where} holds {outside}, which does not fit the GPU's int32")


def as_gpu_array(index: int, tensor: LiveTensor, given: Any) -> np.ndarray:
    """Check the host dtype and narrow integers of any width to int32 after a range check."""
    array = as_array(index, given)
    where = f"input {index} ({tensor.label})"
    # numpy's own integer is int32 in the page and int64 elsewhere: either is one to a caller.
    both_integers = tensor.dtype in (I32, I64) and array.dtype.kind in "iu"
    if array.dtype != tensor.dtype.host and not both_integers:
        raise InputError(f"{where} takes {tensor.dtype.host}, got {array.dtype}")
    if both_integers:
        check_int32(where, array)
    return np.asarray(array, tensor.dtype.gpu, order="C")
