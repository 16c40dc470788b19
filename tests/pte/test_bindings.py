"""Arguments of kernels that the host computes, fields of flatbuffers, and zeros nobody stored.

What is taken and what is not, without torch and without a GPU.
"""

import hashlib
import struct
from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import I64
from py_runtime.live.host_arrays import check_int32
from py_runtime.pte import flatbuffer as reading
from py_runtime.pte.container import HostTensor, TensorIds
from py_runtime.pte.errors import PteError
from py_runtime.pte.flatbuffer import Budget, FlatBuffer
from py_runtime.pte.kernels import (
    AXIS,
    FLAG,
    IGNORED,
    INTS,
    MAX_ELEMENTS,
    MAYBE_AXES,
    MAYBE_AXIS,
    MAYBE_NUMBER,
    NUMBER,
    REAL,
    TENSOR,
    TENSORS,
    WHOLE,
    WORD,
    HostKernel,
    LiveArgument,
    _is_of,
)
from py_runtime.pte.translate import _key_of_zeros
from tests.pte.written import Scalar, Table, Vector, flatbuffer

RANK = 3
OF: dict[str, tuple[list[Any], list[Any]]] = {  # what is of the kind, and what is not
    AXIS: ([0, 2, -1, -3], [3, -4, 1.0, True, None, (0,), "x"]),
    MAYBE_AXIS: ([0, 2, -3, None], [3, -4, 1.0, True]),
    MAYBE_AXES: (
        [None, (), (0,), (0, 2), (-1, 0), (-3,)],
        [(3,), (-4,), (0, 0), (0, -3), 1, (1.0,)],
    ),
    INTS: ([(), (1,), (5, -7)], [None, 1, (1.0,), (True,), "ab"]),
    FLAG: ([True, False], [1, 0, None, "x"]),
    WORD: (["floor", "", None], [1, True, (1,)]),
    REAL: ([1, 1.5, 0], [True, None, "x"]),
    WHOLE: ([1, 0, -5], [1.5, True, None]),
    IGNORED: ([1, None, "x", 1.5, True, (1,)], []),
    MAYBE_NUMBER: ([None], []),
}


@pytest.mark.parametrize("kind", OF)
def test_what_an_argument_may_be(kind: str) -> None:
    good, bad = OF[kind]
    assert [value for value in good if not _is_of(kind, value, RANK)] == []
    assert [value for value in bad if _is_of(kind, value, RANK)] == []


def host(*dims: int) -> HostTensor:
    return HostTensor(np.dtype(np.float32), dims, False, 0)


X, OUT = host(2, 3), host(2, 3)


def bind_call(
    kinds: tuple[str, ...], values: list[Any], *ids: int, given: Any = (), **more: Any
) -> Any:
    def dims(*shown: Any) -> Any:
        return more.get("dims", (2, 3))

    kernel = HostKernel(kinds, dims, lambda *_: None, more.get("outputs", 1))
    return kernel.bind(values, ids, frozenset(given))


def test_arguments_then_outputs_then_all_of_them() -> None:
    values = [X, OUT, 5, TensorIds((1, 3)), host(2, 3)]
    values[3], values[4] = host(2, 3), TensorIds((1, 3))
    assert bind_call((TENSOR,), values, 0, 1, 1) == (LiveArgument((0,)),)
    assert bind_call((TENSOR, WHOLE), values, 0, 2, 1, 1) == (LiveArgument((0,)), 5)
    for ids in ((0, 1), (0, 1, 1, 1), (0, 1, 0), (2, 1, 1), (0, 2, 2)):
        assert bind_call((TENSOR,), values, *ids) is None
    assert bind_call((TENSOR,), values, 0, 1, 3, 4, outputs=2) == (LiveArgument((0,)),)
    for ids in ((0, 1, 3, 3), (0, 3, 1, 4), (0, 1, 3)):
        assert bind_call((TENSOR,), values, *ids, outputs=2) is None


def test_results_have_the_dims_that_follow() -> None:
    values = [X, OUT, host(MAX_ELEMENTS), host(MAX_ELEMENTS + 1)]
    assert bind_call((TENSOR,), values, 0, 1, 1, dims=(3, 2)) is None
    assert bind_call((TENSOR,), values, 0, 1, 1, dims=None) is None
    assert bind_call((TENSOR,), values, 0, 2, 2, dims=(MAX_ELEMENTS,)) is not None
    assert bind_call((TENSOR,), values, 0, 3, 3, dims=(MAX_ELEMENTS + 1,)) is None


@pytest.mark.parametrize("number", [5, 2.5, True])
def test_numbers_may_differ_from_call_to_call(number: Any) -> None:
    values = [X, OUT, number, None]
    for kind in (NUMBER, MAYBE_NUMBER):
        assert bind_call((TENSOR, kind), values, 0, 2, 1, 1)[1] == LiveArgument((2,))
        assert bind_call((TENSOR, kind), values, 0, 3, 1, 1, given=[3])[1] == LiveArgument((3,))
    assert bind_call((TENSOR, NUMBER), values, 0, 3, 1, 1) is None
    assert bind_call((TENSOR, MAYBE_NUMBER), values, 0, 3, 1, 1)[1] is None
    assert bind_call((TENSOR, NUMBER), [X, OUT, "x"], 0, 2, 1, 1) is None


def test_lists_are_of_ids() -> None:
    values: list[Any] = [X, OUT, 1, -1, (2, 3), (2, 9), (-1,), (2.0,), (0,)]
    assert bind_call((TENSOR, MAYBE_AXES), values, 0, 4, 1, 1) is None  # axis 1, and the same again
    values[3] = 0
    assert bind_call((TENSOR, MAYBE_AXES), values, 0, 4, 1, 1)[1] == (1, 0)
    assert bind_call((TENSOR, INTS), values, 0, 4, 1, 1)[1] == (1, 0)
    for at in (5, 6, 7, 8):
        assert bind_call((TENSOR, INTS), values, 0, at, 1, 1) is None
    assert bind_call((TENSOR, INTS), [X, OUT, 1, (4,)], 0, 3, 1, 1) is None  # one past the last


def test_lists_of_tensors_may_have_gaps() -> None:
    values: list[Any] = [X, OUT, TensorIds((0, -1)), TensorIds((0, 9)), TensorIds((2,)), 5]
    assert bind_call((TENSORS,), values, 2, 1, 1) == (LiveArgument((0, -1), is_list=True),)
    for at in (3, 4, 5):
        assert bind_call((TENSORS,), values, at, 1, 1) is None
    assert bind_call((TENSORS,), [X, OUT, TensorIds((3,))], 2, 1, 1) is None  # one past the last


@pytest.mark.parametrize("nbytes", [0, 1, 1 << 20, (1 << 20) + 1, (2 << 20) + 7])
def test_the_key_of_zeros(nbytes: int) -> None:
    assert _key_of_zeros(nbytes) == hashlib.sha256(bytes(nbytes)).hexdigest()


# Flatbuffers --------------------------------------------------------------------------------------


def opened(root: Table, budget: Budget | None = None) -> FlatBuffer:
    data = flatbuffer(root, b"TEST")
    if budget is None:
        budget = Budget("f", 1 << 20)
        budget.read(len(data))
    return FlatBuffer(data, b"TEST", "f", budget)


FORMS = {"i32s": "i", "u32s": "I", "i64s": "q", "u64s": "Q", "f64s": "d", "u8s": "B"}


@pytest.mark.parametrize("method", FORMS)
def test_vectors(method: str) -> None:
    form = FORMS[method]
    items = [1, 2, struct.unpack(f"<{form}", b"\x7f" * struct.calcsize(form))[0]]
    root = opened(Table({0: Vector(form, items), 2: Vector(form, [])})).root()
    assert getattr(root, method)(0) == tuple(items)
    assert getattr(root, method)(1) == getattr(root, method)(2) == ()
    with pytest.raises(PteError, match="lie outside its"):
        getattr(opened(Table({0: Vector(form, items, claimed=99)})).root(), method)(0)


def test_scalars_texts_and_what_is_absent() -> None:
    table = {0: Scalar("b", -3), 1: Scalar("B", 200), 2: "text", 3: Vector("B", [0, 1, 2])}
    root = opened(Table(table)).root()
    assert (root.i8(0), root.u8(1), root.text(2)) == (-3, 200, "text")
    assert root.booleans(3) == (False, True, True)
    assert root.span(3)[1] == 3
    assert (root.i8(9), root.text(9), root.booleans(9), root.span(9)) == (0, "", (), (0, 0))
    assert root.tables(9) == []


def test_a_vector_that_ends_with_the_file() -> None:
    data = flatbuffer(Table({0: Vector("B", [7, 8, 9])}), b"TEST").rstrip(b"\0")
    while data[-1] != 9:
        data = data[:-1]
    for cut, is_whole in ((data, True), (data[:-1], False)):
        budget = Budget("f", 1 << 20)
        budget.read(len(cut))
        root = FlatBuffer(cut, b"TEST", "f", budget).root()
        if is_whole:
            assert root.u8s(0) == (7, 8, 9)
        else:
            with pytest.raises(PteError):
                root.u8s(0)


def test_no_more_is_looked_at_than_a_file_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inline data may be read twice, and a few parts are free."""
    budget = Budget("f", 100)
    budget.read(200)
    budget.spend(reading.FIXED_ITEMS + 200)
    with pytest.raises(PteError, match="refers to more than fits into it"):
        budget.spend(1)
    with pytest.raises(PteError, match="refers to more than fits into it"):
        Budget("f", 100).read(201)
    monkeypatch.setattr(reading, "MAX_ITEMS", 50)
    many = Budget("f", 100)
    many.read(100)
    many.spend(50)
    with pytest.raises(PteError, match="has more than 50 parts"):
        many.spend(1)


def test_integers_of_the_gpu() -> None:
    """Both ends of int32 are tried, in any width that might hold more."""
    assert I64.gpu_bytes == 4
    for dtype in (np.int64, np.int32, np.uint32):
        fitting = [0, 2**31 - 1] if dtype is np.uint32 else [-(2**31), 2**31 - 1]
        check_int32("x", np.array(fitting, dtype))
    check_int32("x", np.array([], np.int64))
    for given, told in (
        ([2**31], 2**31),
        ([-(2**31) - 1, 2**31], -(2**31) - 1),
        ([0, 2**40], 2**40),
    ):
        with pytest.raises(Exception, match=f"x holds {told}, which does not fit"):
            check_int32("x", np.array(given, np.int64))
    with pytest.raises(Exception, match="x holds 2147483648"):
        check_int32("x", np.array([2**31], np.uint32))
