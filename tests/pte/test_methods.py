"""Traps in methods: changed inputs, several methods and delegates, widths, shapes that vary."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.pte.loaded import loaded
from tests.pte.written import (
    call_delegate,
    call_kernel,
    delegate,
    doubled,
    integer,
    method,
    move,
    one_vector,
    pte,
    tensor,
    union,
    vk_call,
    vk_graph,
    vk_int,
    vk_list,
    vk_tensor,
)
from tests.runners import Runner

A = np.array([10, 20, 30, 40], np.float32)
B = np.array([1, 2, 3, 4], np.float32)
DOUBLE_OF = "aten.add.Tensor"  # x + x


def test_an_input_that_the_model_changes(runner: Runner, tmp_path: Path) -> None:
    """`aten::copy_` writes what the delegate computed into the caller's own array."""
    call = call_kernel(0, 0, 2, 1, 0)
    plan = method(
        "forward",
        [tensor("f32", 4), union(3, {}), tensor("f32", 4)],
        [0],
        [0],
        [call_delegate(0, 0, 2), call],
        [delegate(0)],
        ["aten::copy_"],
    )
    path = tmp_path / "mutated.pte"
    path.write_bytes(pte([plan], [doubled()]))
    with loaded(runner, path) as module:
        (output,), (given,) = module.run_and_keep([A])
        assert module.description["methods"]["forward"]["mutated_inputs"] == [0]
    assert output.tolist() == given.tolist() == [20, 40, 60, 80]


def test_several_methods(run: Any) -> None:
    """They share a delegate, and differ in what they take."""
    file = pte(
        [
            method(name, [tensor("f32", 4)] * 2, [0], [1], [call_delegate(0, 0, 1)], [delegate(0)])
            for name in ("forward", "twice")
        ]
        + [method("get_n", [integer(3)], [], [0])],
        [doubled()],
    )
    for name in ("forward", "twice"):
        assert run(file, [B], name=name)[0][0].tolist() == [2, 4, 6, 8]


def test_delegates_run_one_after_the_other(run: Any) -> None:
    plan = method(
        "forward",
        [tensor("f32", 4)] * 4,
        [0],
        [3, 2],
        [call_delegate(1, 0, 1), call_delegate(0, 1, 2), move(1, 3)],
        [delegate(0), delegate(0)],
    )
    ((once, twice),) = run(pte([plan], [doubled()]), [B])
    assert once.tolist() == [2, 4, 6, 8]
    assert twice.tolist() == [4, 8, 12, 16]


def test_64_bits_on_the_host(run: Any) -> None:
    """Integers and floats that are 32 bits wide on the GPU have the method's width outside it."""
    values = [
        vk_tensor("i32", 4),
        vk_tensor("f32", 4),
        vk_int(1),
        vk_tensor("i32", 4),
        vk_tensor("f32", 4),
    ]
    chain = [vk_call(DOUBLE_OF, 0, 0, 2, 3), vk_call(DOUBLE_OF, 1, 1, 2, 4)]
    plan = method(
        "forward",
        [tensor("i64", 4), tensor("f64", 4), tensor("i64", 4), tensor("f64", 4)],
        [0, 1],
        [2, 3],
        [call_delegate(0, 0, 1, 2, 3)],
        [delegate(0)],
    )
    whole, half = np.array([1, -2, 3, 2**20]), np.array([0.5, 1.5, -2.5, 3])
    file = pte([plan], [vk_graph(values, chain, [0, 1], [3, 4])])
    ((integers, floats),) = run(file, [whole, half])
    assert integers.dtype == np.int64
    assert integers.tolist() == [2, -4, 6, 2**21]
    assert floats.dtype == np.float64
    assert floats.tolist() == [1, 3, -5, 6]


def test_calls_leave_nothing_behind(run: Any) -> None:
    """A call with the same inputs returns the same again, and outputs of the last one stay.

    The exporter lets inputs and outputs share memory with what lies between.
    """
    first, other, again = run(one_vector(doubled()), [A], [B], [A])
    assert first[0].tolist() == again[0].tolist() == [20, 40, 60, 80]
    assert other[0].tolist() == [2, 4, 6, 8]


def test_dims_that_vary(run: Any) -> None:
    values = [vk_tensor("f32", 3, 4), vk_int(1), vk_tensor("f32", 3, 4), vk_list(2)]
    graph = vk_graph(values, [vk_call(DOUBLE_OF, 0, 0, 1, 2)], [0], [2])
    plan = method(
        "forward",
        [tensor("f32", 3, 4, dynamic=True)] * 2,
        [0],
        [1],
        [call_delegate(0, 0, 1)],
        [delegate(0)],
    )
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for rows, (out,) in zip(
        (3, 1, 2), run(pte([plan], [graph]), [x], [x[:1]], [x[:2]]), strict=True
    ):
        np.testing.assert_array_equal(out, 2 * x[:rows])
