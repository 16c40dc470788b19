"""Inputs that a method cannot take: each is refused with a sentence of ours."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import InputError
from py_runtime.pte import PteModule, load
from tests.pte.memory_source import MemorySource
from tests.pte.written import (
    call_delegate,
    delegate,
    method,
    pte,
    tensor,
    union,
    vk_call,
    vk_graph,
    vk_int,
    vk_symint,
    vk_tensor,
)
from tests.runners import NativeRunner, wait


def doubled_integers(width: str) -> bytes:
    values = [vk_tensor("i32", 2), vk_int(1), vk_tensor("i32", 2)]
    graph = vk_graph(values, [vk_call("aten.add.Tensor", 0, 0, 1, 2)], [0], [2])
    ends, call = [tensor(width, 2)] * 2, call_delegate(0, 0, 1)
    return pte([method("forward", ends, [0], [1], [call], [delegate(0)])], [graph])


@pytest.fixture(scope="module")
def modules(native: NativeRunner) -> Iterator[dict[str, PteModule]]:
    loaded = {
        width: wait(load(MemorySource(doubled_integers(width)), native.device))
        for width in ("i32", "i64")
    }
    yield loaded
    for module in loaded.values():
        module.unload()


@pytest.mark.parametrize("width", ["i32", "i64"])
def test_integers_of_any_width_are_taken(modules: dict[str, PteModule], width: str) -> None:
    for given in ([3, -4], np.array([3, -4], np.int8), np.array([3, -4], np.int64)):
        (doubled,) = wait(modules[width].run([given]))
        assert doubled.dtype == {"i32": np.int32, "i64": np.int64}[width]
        assert doubled.tolist() == [6, -8]


@pytest.mark.parametrize("width", ["i32", "i64"])
@pytest.mark.parametrize(
    "given",
    [
        np.array([2**32 + 5, 1]),
        np.array([1, -(2**31) - 1]),
        np.array([2**31, 1], np.uint32),
        np.array([2**64 - 1, 1], np.uint64),
    ],
)
def test_integers_that_do_not_fit_never_wrap(
    modules: dict[str, PteModule], width: str, given: np.ndarray
) -> None:
    with pytest.raises(InputError, match=r"input 0 .*holds -?[0-9]+, which does not fit"):
        wait(modules[width].run([given]))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "takes 1 inputs, got 0"),
        ([[1, 2], [3, 4]], "takes 1 inputs, got 2"),
        (np.array([[1, 2]]), "takes a list of its inputs, got ndarray"),
        (None, "takes a list of its inputs, got NoneType"),
        ([[1.5, 2.0]], "input 0 takes int64, got float64"),
        ([[True, False]], "input 0 takes int64, got bool"),
        ([None], "input 0 takes int64, got object"),
        ([[[1, 2], [3]]], "input 0 is not an array"),
        ([[1, 2, 3]], r"input 0 takes \[2\], got \[3\]"),
        ([[1]], r"input 0 takes \[2\], got \[1\]"),
        ([[[1, 2]]], r"input 0 takes \[2\], got \[1, 2\]"),
        ([np.zeros(0, int)], r"input 0 takes \[2\], got \[0\]"),
    ],
)
def test_what_is_no_input_is_refused(
    modules: dict[str, PteModule], inputs: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        wait(modules["i64"].run(inputs))


# The delegate's own order ------------------------------------------------------------------------

ROWS, COUNTS = np.zeros((2, 3), np.float32), np.zeros(2, int)


@pytest.fixture(scope="module")
def crossed(native: NativeRunner) -> Iterator[PteModule]:
    """Load forward(rows [2, 3] or fewer, counts [2], from) = rows[from:], counts + counts.

    The delegate takes them the other way round.
    """
    values = [
        vk_symint(),
        vk_tensor("i32", 2),
        vk_tensor("f32", 2, 3),
        vk_int(0),
        vk_int(2),
        vk_int(1),
        vk_tensor("f32", 2, 3),
        vk_tensor("i32", 2),
    ]
    chain = [
        vk_call("aten.slice_copy.Tensor", 2, 3, 0, 4, 5, 6),
        vk_call("aten.add.Tensor", 1, 1, 5, 7),
    ]
    rows = tensor("f32", 2, 3, dynamic=True)
    ends = [rows, tensor("i64", 2), union(1, {}), rows, tensor("i64", 2)]
    call = call_delegate(0, 2, 1, 0, 3, 4)
    plan = method("forward", ends, [0, 1, 2], [3, 4], [call], [delegate(0)])
    file = pte([plan], [vk_graph(values, chain, [0, 1, 2], [6, 7])])
    module = wait(load(MemorySource(file), native.device))
    yield module
    module.unload()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([ROWS.astype(np.float64), COUNTS, 0], "input 0 takes float32"),
        ([ROWS[:, :0], COUNTS, 0], "dim 1 is 0; empty tensors"),
        (
            [np.zeros((3, 3), np.float32), COUNTS, 0],
            r"input 0 takes at most \[2, 3\], got \[3, 3\]",
        ),
        ([ROWS[0], COUNTS, 0], r"input 0 takes at most \[2, 3\], got \[3\]"),
        ([ROWS, COUNTS + 2**40, 0], "input 1 holds 1099511627776"),
        ([ROWS, COUNTS[:1], 0], r"input 1 takes \[2\]"),
        ([ROWS, COUNTS, 0.5], "input 2 is a SymInt and takes one integer"),
        ([ROWS, COUNTS, None], "input 2 is a SymInt and takes one integer"),
        ([ROWS, COUNTS, 2**40], "1099511627776"),
    ],
)
def test_inputs_have_the_callers_numbers(
    crossed: PteModule, inputs: list[Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        wait(crossed.run(inputs))
    rest, _ = wait(crossed.run([ROWS, COUNTS, 1]))
    assert rest.shape == (1, 3)
