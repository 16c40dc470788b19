"""Arrays that callers pass: integers of any width that fit, the dtype that is asked for alone."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I32, I64
from py_runtime.base.errors import InputError
from py_runtime.live.host_arrays import as_gpu_array, as_int
from py_runtime.live.values import LiveTensor

IDS, FLOATS = LiveTensor(0, "ids", I64, (2, 3)), LiveTensor(1, "floats", F32, (2, 3))


@pytest.mark.parametrize("given", [7, np.uint8(7), np.array([[7]]), [7]])
def test_one_integer_is_a_symint(given: Any) -> None:
    assert as_int(0, given) == 7


@pytest.mark.parametrize("given", [7.0, [7, 8], [], "7", True, None])
def test_anything_else_is_none(given: Any) -> None:
    with pytest.raises(InputError, match="input 3 is a SymInt and takes one integer"):
        as_int(3, given)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_integers_become_the_gpu_s(dtype: Any) -> None:
    given = np.arange(6, dtype=dtype).reshape(3, 2).T
    found = as_gpu_array(0, IDS, given)
    assert found.dtype == np.int32
    assert found.flags.c_contiguous, "uploads take the bytes as they lie"
    np.testing.assert_array_equal(found, given)


@pytest.mark.parametrize("outside", [2**31, -(2**31) - 1])
def test_no_integer_wraps(outside: int) -> None:
    with pytest.raises(InputError, match=rf"input 0 \(ids\) holds {outside}, which does not fit"):
        as_gpu_array(0, IDS, [1, outside])


def test_another_dtype_is_refused() -> None:
    with pytest.raises(InputError, match=r"input 1 \(floats\) takes float32, got float64"):
        as_gpu_array(1, FLOATS, np.zeros((2, 3)))
    with pytest.raises(InputError, match=r"input 0 \(ids\) takes int64, got float32"):
        as_gpu_array(0, IDS, np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("tensor", [IDS, LiveTensor(0, "ids", I32, (2, 3))], ids=["i64", "i32"])
def test_the_outermost_integers_fit(tensor: LiveTensor) -> None:
    found = as_gpu_array(0, tensor, np.array([-(2**31), 2**31 - 1]))
    assert found.tolist() == [-(2**31), 2**31 - 1]
    with pytest.raises(InputError, match="does not fit"):
        as_gpu_array(0, tensor, np.array([2**31 - 1, 2**31], np.uint32))


@pytest.mark.parametrize("dtype", [np.int64, np.uint16])
def test_no_integers_at_all_fit_as_well(dtype: Any) -> None:
    assert as_gpu_array(0, IDS, np.zeros((0, 3), dtype)).shape == (0, 3)


@pytest.mark.parametrize("given", [[True, False], [2**70], "seven"])
def test_what_only_looks_like_integers_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match=r"input 4 \(ids\) takes int64, got"):
        as_gpu_array(4, IDS, given)


def test_rows_of_different_lengths_are_no_array() -> None:
    with pytest.raises(InputError, match="input 2 is not an array"):
        as_gpu_array(2, IDS, [[1, 2], [3]])
