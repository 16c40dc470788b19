"""Kernels that the exporter leaves outside the delegate, and that the host computes."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import InputError
from py_runtime.pte import PteError, UnsupportedPteError, load, open_pte
from tests.pte.memory_source import MemorySource
from tests.pte.written import (
    Scalar,
    Table,
    call_delegate,
    call_kernel,
    delegate,
    doubled,
    integer,
    method,
    pte,
    tensor,
    u8,
    union,
    vk_call,
    vk_graph,
    vk_int,
    vk_tensor,
)
from tests.runners import NativeRunner, wait

ROWS = np.array([[1, 0, -0.5], [0, 0, 0]], np.float32)
LIVE = union(1, {})  # an integer that callers pass


def double(value: float) -> Table:
    return union(4, {0: Scalar("d", value)})


def flag(value: bool) -> Table:
    return union(3, {0: u8(value)})


def kernel(name: str, *values: Table, inputs: int = 1) -> bytes:
    """Write a method that is this kernel alone.

    The values are its arguments and then its output, the first of them its inputs.
    """
    args = [*range(len(values)), len(values) - 1]
    plan = method(
        "forward", values, range(inputs), args[-1:], [call_kernel(0, *args)], operators=[name]
    )
    return pte([plan], [])


def test_a_number_becomes_a_tensor_that_a_delegate_takes(run: Any) -> None:
    """The number stands here in x + 2.5; models have it in `where(x > 0, x, 2.5)`."""
    values = [vk_tensor("f32", 2, 3), vk_tensor("f32"), vk_int(1), vk_tensor("f32", 2, 3)]
    graph = vk_graph(values, [vk_call("aten.add.Tensor", 0, 1, 2, 3)], [0, 1], [3])
    plan = method(
        "forward",
        [tensor("f32", 2, 3), double(2.5), tensor("f32"), tensor("f32", 2, 3)],
        [0],
        [3],
        [call_kernel(0, 1, 2, 2), call_delegate(0, 0, 2, 3)],
        [delegate(0)],
        ["aten::scalar_tensor.out"],
    )
    ((total,),) = run(pte([plan], [graph]), [ROWS])
    np.testing.assert_array_equal(total, ROWS + 2.5)


def test_a_kernel_stands_between_delegates(run: Any) -> None:
    plan = method(
        "forward",
        [*[tensor("f32", 4)] * 4, double(0.5), integer(2)],
        [0],
        [3],
        [call_delegate(0, 0, 1), call_kernel(0, 1, 4, 5, 2, 2), call_delegate(1, 2, 3)],
        [delegate(0), delegate(0)],
        ["aten::add.Scalar_out"],
    )
    ((out,),) = run(pte([plan], [doubled()]), [np.arange(4, dtype=np.float32)])
    assert out.tolist() == [2, 6, 10, 14]  # 2 (2x + 2 · 0.5)


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        (
            kernel("aten::mul.Scalar_out", tensor("f32", 2, 3), double(0.1), tensor("f32", 2, 3)),
            ROWS * np.float32(0.1),
        ),
        (
            kernel("aten::mul.Scalar_out", tensor("f32", 2, 3), integer(3), tensor("f32", 2, 3)),
            ROWS * 3,
        ),
        (
            kernel(
                "aten::any.out",
                tensor("f32", 2, 3),
                integer(-1),
                flag(value=True),
                tensor("bool", 2, 1),
            ),
            np.array([[True], [False]]),
        ),
        (
            kernel(
                "aten::any.out",
                tensor("f32", 2, 3),
                integer(0),
                flag(value=False),
                tensor("bool", 3),
            ),
            np.array([True, False, True]),
        ),
    ],
)
def test_each_gives_what_torch_gives(file: bytes, wanted: np.ndarray, run: Any) -> None:
    ((got,),) = run(file, [ROWS])
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(got, wanted)


def test_infinity_and_integers(run: Any) -> None:
    ((least,),) = run(
        kernel("aten::scalar_tensor.out", double(-np.inf), tensor("f32"), inputs=0), []
    )
    assert least == -np.inf
    wide = kernel("aten::mul.Scalar_out", tensor("i64", 2), integer(2**40), tensor("i64", 2))
    ((products,),) = run(wide, [np.array([3, -5])])
    assert products.tolist() == [3 * 2**40, -5 * 2**40]


def test_an_integer_that_callers_pass(native: NativeRunner) -> None:
    file = kernel("aten::scalar_tensor.out", LIVE, tensor("i32"))
    module = wait(load(MemorySource(file), native.device))
    assert module.describe()["methods"]["forward"]["inputs"][0]["dtype"] == "int"
    for number in (7, -3):
        (out,) = wait(module.run([number]))
        assert (out.dtype, out.shape, int(out)) == (np.int32, (), number)
    for given in (None, 2.5, "7", 2**31, -(2**40)):
        with pytest.raises(InputError, match="input 0 "):
            wait(module.run([given]))


X, Y = tensor("f32", 2, 3), tensor("f32", 2, 1)


@pytest.mark.parametrize(
    "file",
    [
        kernel("aten::scalar_tensor.out", tensor("f32"), inputs=0),
        kernel("aten::scalar_tensor.out", X, tensor("f32")),
        kernel("aten::scalar_tensor.out", integer(1), integer(1)),
        kernel("aten::scalar_tensor.out", integer(1), tensor("f32", 1), inputs=0),
        kernel("aten::scalar_tensor.out", LIVE, tensor("f32"), inputs=0),
        kernel("aten::scalar_tensor.out", union(6, {0: "text"}), tensor("f32"), inputs=0),
        kernel("aten::mul.Scalar_out", X, X, X),
        kernel("aten::mul.Scalar_out", integer(1), integer(1), X),
        kernel("aten::mul.Scalar_out", X, integer(1), Y),
        kernel("aten::add.Scalar_out", X, integer(1), X),
        kernel("aten::any.out", X, integer(2), flag(value=True), Y),
        kernel("aten::any.out", X, integer(-3), flag(value=True), Y),
        kernel("aten::any.out", X, LIVE, flag(value=True), Y),
        kernel("aten::any.out", X, integer(1), integer(1), Y),
        kernel("aten::any.out", X, integer(1), flag(value=False), Y),
        kernel("aten::any.out", tensor("f32"), integer(0), flag(value=False), tensor("f32")),
        pte([method("forward", [X], [0], [0], [call_kernel(0)], (), ["aten::any.out"])], []),
        pte([method("forward", [X], [0], [0], [call_kernel(0, 0)], (), ["aten::any.out"])], []),
    ],
)
def test_a_call_of_another_form_is_refused(file: bytes) -> None:
    with pytest.raises(PteError, match=r"has a aten::[a-zA-Z_.]+ of an unknown form"):
        wait(open_pte(MemorySource(file)))


def test_any_other_kernel_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedPteError) as caught:
        wait(open_pte(MemorySource(kernel("aten::erf.out", X, X))))
    assert caught.value.names == ["aten::erf.out (outside the delegate)"]
