"""Dims and dtypes of kernels that the host computes, against what numpy and torch make of them."""

from typing import Any

import numpy as np
import pytest
import torch

from py_runtime.base.errors import InputError
from py_runtime.pte.container import HostTensor
from py_runtime.pte.host_by_places import BY_PLACES
from py_runtime.pte.host_over_dims import OVER_DIMS
from py_runtime.pte.host_rules import as_one_dtype, dims_without, joint_dims, wide
from py_runtime.pte.kernels import LiveArgument
from py_runtime.pte.methods import CopyStep, DelegateStep, KernelStep, Method
from py_runtime.pte.module import _as_input

pytestmark = pytest.mark.torch

F32, F64, I32, I64, BOOL = (np.dtype(n) for n in ("float32", "float64", "int32", "int64", "bool"))
INDEX = BY_PLACES["aten::index.Tensor_out"]


def host(*dims: int, dtype: np.dtype = F32, dynamic: bool = False) -> HostTensor:
    return HostTensor(dtype, dims, dynamic, 0)


# Dims ---------------------------------------------------------------------------------------------

X_DIMS = (4, 5, 6)
INDICES: list[Any] = [
    *([], [None], [None, None], [None, None, None], [(3,)], [None, (3,)], [(2, 3), None]),
    *([(3,), (3,)], [(3,), None, (3,)], [None, (2, 1), (3,)], [(3,), (3,), (3,)], [(), (3,)]),
    *([(2,), (3,)], [(3,), None, (2,)], [(2, 3), (3,)]),
]


@pytest.mark.parametrize("places", INDICES, ids=str)
def test_dims_of_what_is_looked_up(places: list[tuple[int, ...] | None]) -> None:
    """Check that the dims are numpy's; there are none where numpy refuses the places."""
    x = np.zeros(X_DIMS)
    indices = [None if dims is None else np.zeros(dims, np.int64) for dims in places]
    key = tuple(slice(None) if index is None else index for index in indices)
    tensors = [None if dims is None else host(*dims, dtype=I64) for dims in places]
    found = INDEX.dims(host(*X_DIMS), tensors)
    try:
        assert found == x[key].shape
        assert np.array_equal(INDEX.compute(F64, x, indices), x[key])
    except IndexError:
        assert found is None


def test_dims_of_places_that_cannot_be() -> None:
    place, mask = host(3, dtype=I64), host(4, dtype=BOOL)
    assert INDEX.dims(host(4), [place, place]) is None, "more places than dims"
    assert INDEX.dims(host(4), [mask]) is None, "how many a mask picks depends on data"
    assert INDEX.dims(host(4, 5), [place, mask]) is None
    rows = BY_PLACES["aten::embedding.out"]
    assert rows.dims(host(7, 5), host(2, 3, dtype=I64)) == (2, 3, 5)
    assert rows.dims(host(7, 5), host(dtype=I64)) == (5,)
    for dims in ((7,), (7, 5, 2)):
        assert rows.dims(host(*dims), host(2, dtype=I64)) is None


def test_what_is_put_replaces_or_adds() -> None:
    put = BY_PLACES["aten::index_put.out"]
    x, places, values = np.ones(3, np.float32), [np.array([1, 1])], np.array([5, 7], np.float32)
    assert put.compute(F32, x, places, values, False).tolist() == [1, 7, 1]
    assert put.compute(F32, x, places, values, True).tolist() == [1, 13, 1]
    assert x.tolist() == [1, 1, 1], "what was given stays as it is"
    assert put.dims(host(3), [host(2, dtype=I64)], host(2), False) == (3,)


AXES: list[Any] = [None, (), (0,), (1,), (-1,), (0, 2), (-3, -1), (0, 1, 2), 0, 2, -1]


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("keeps", [True, False])
def test_dims_of_what_goes_over_axes(axes: Any, keeps: bool) -> None:
    over = axes if isinstance(axes, int) else axes or None
    expected = np.zeros(X_DIMS).sum(axis=over, keepdims=keeps).shape
    assert dims_without(host(*X_DIMS), axes, keeps) == expected


@pytest.mark.parametrize(
    ("count", "axis", "dims"),
    [
        *((0, 0, (0, 5)), (4, 0, (4, 5)), (5, 0, None), (-1, 0, None), (2, 1, (4, 2))),
        *((5, -1, (4, 5)), (6, -1, None)),
    ],
)
def test_dims_of_the_largest(count: int, axis: int, dims: tuple[int, ...] | None) -> None:
    top = OVER_DIMS["aten::topk.values"]
    assert top.dims(host(4, 5), count, axis, True, True) == dims
    assert top.dims(host(), 0, 0, True, True) is None
    if dims is not None:
        x = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
        values, places = top.compute(F32, x, count, axis, True, True)
        theirs = torch.topk(torch.from_numpy(x), count, axis)
        assert np.array_equal(values, theirs.values.numpy())
        assert np.array_equal(places, theirs.indices.numpy())


def test_joint_dims() -> None:
    assert joint_dims(host(3, 1), 2.5, host(4)) == (3, 4)
    assert joint_dims(host(3), host(4)) is None
    assert joint_dims(None, host(2)) == (2,)


# Dtypes -------------------------------------------------------------------------------------------

TENSORS = [torch.ones(2, dtype=dtype) for dtype in (torch.float32, torch.float64)]
TENSORS += [torch.ones(2, dtype=dtype) for dtype in (torch.int32, torch.int64, torch.uint8)]
TENSORS += [torch.ones(2, dtype=torch.bool)]


@pytest.mark.parametrize("second", [*TENSORS, 2, 2.5, True], ids=str)
@pytest.mark.parametrize("first", TENSORS, ids=lambda tensor: str(tensor.dtype))
def test_dtypes_are_those_that_torch_takes(first: torch.Tensor, second: Any) -> None:
    other = second.numpy() if isinstance(second, torch.Tensor) else second
    a, b = as_one_dtype(first.numpy(), other)
    wanted = torch.ones(0, dtype=torch.result_type(first, second)).numpy().dtype
    assert (a.dtype, b.dtype) == (wanted, wanted)


def test_sums_are_wider_than_floats() -> None:
    assert wide(np.ones(1, np.float32)).dtype == np.float64
    assert wide(np.ones(1, np.int32)).dtype == np.int32


# Methods and what they take -----------------------------------------------------------------------


def test_the_ends_of_a_method() -> None:
    kernel = KernelStep("x", INDEX, (LiveArgument((2, -1, 0)), 5, LiveArgument((3,))), (1,))
    graph = DelegateStep(None, {}, (4,), (5,))  # type: ignore[arg-type]
    values = tuple(host(size) for size in range(6))
    method = Method("m", values, (2, 0), (1, 5), (kernel, CopyStep(1, 0), graph))
    assert kernel.taken == (2, 0, 3)
    assert method.inputs == (values[2], values[0])
    assert method.outputs == (values[1], values[5])
    assert method.taken_ids == {0, 2, 3, 4}
    assert method.delegates == (graph,)
    assert Method("m", values, (), (), (graph,)).delegate is graph


@pytest.mark.parametrize("fixed", [None, True, 7, 2.5, "word"])
def test_a_fixed_input_is_taken_as_it_was_exported(fixed: Any) -> None:
    assert _as_input(0, fixed, fixed, is_live=False) is fixed
    for other in (None, False, 8, 7.0, 2.0, 1, "other"):
        if type(other) is not type(fixed) or other != fixed:
            with pytest.raises(InputError, match="was fixed at"):
                _as_input(0, fixed, other, is_live=False)


def test_a_live_integer() -> None:
    assert _as_input(0, 7, 2**31 - 1, is_live=True) == 2**31 - 1
    assert _as_input(0, 7, -(2**31), is_live=True) == -(2**31)
    for number in (2**31, -(2**31) - 1):
        with pytest.raises(InputError):
            _as_input(0, 7, number, is_live=True)


@pytest.mark.parametrize(
    ("dims", "dynamic", "taken"),
    [
        *(((3, 4), False, True), ((2, 4), False, False), ((3, 4, 1), False, False)),
        *(((3, 4), True, True), ((2, 1), True, True), ((4, 4), True, False)),
        *(((3, 5), True, False), ((3,), True, False), ((3,), False, False)),
    ],
)
def test_dims_of_an_input(dims: tuple[int, ...], dynamic: bool, taken: bool) -> None:
    spec, given = host(3, 4, dynamic=dynamic), np.zeros(dims, np.float32)
    if taken:
        assert _as_input(0, spec, given, is_live=True) is given
    else:
        with pytest.raises(InputError, match="at most" if dynamic else "takes \\[3, 4\\]"):
            _as_input(0, spec, given, is_live=True)


def test_integers_of_an_input_fit_its_dtype() -> None:
    spec = host(2, dtype=np.dtype("int8"))
    taken = _as_input(0, spec, np.array([-128, 127]), is_live=False)
    assert (taken.dtype, taken.tolist()) == (np.dtype("int8"), [-128, 127])
    for wrong in ([-129, 0], [0, 128]):
        with pytest.raises(InputError, match="does not fit"):
            _as_input(0, spec, np.array(wrong), is_live=False)
    empty = _as_input(0, host(0, dtype=np.dtype("int8")), np.zeros(0, np.int64), is_live=True)
    assert empty.shape == (0,)
    large = np.array([2**40, 0])
    assert _as_input(0, host(2, dtype=I64), large, is_live=False) is large
    with pytest.raises(InputError):
        _as_input(0, host(2, dtype=I64), large, is_live=True)
    for dtype in (F32, F64, BOOL):
        with pytest.raises(InputError, match=f"takes {dtype}"):
            _as_input(0, host(2, dtype=dtype), np.array([1, 2]), is_live=False)
