"""What callers pass that a method cannot take: each is refused with a sentence of ours."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.errors import InputError
from py_runtime.pte import PteModule, load
from tests.pte.written import (
    call_delegate,
    delegate,
    method,
    pte,
    tensor,
    vk_call,
    vk_graph,
    vk_int,
    vk_tensor,
)
from tests.runners import NativeRunner, wait


def doubled_integers(width: str) -> bytes:
    values = [vk_tensor("i32", 2), vk_int(1), vk_tensor("i32", 2)]
    graph = vk_graph(values, [vk_call("aten.add.Tensor", 0, 0, 1, 2)], [0], [2])
    ends, call = [tensor(width, 2)] * 2, call_delegate(0, 0, 1)
    return pte([method("forward", ends, [0], [1], [call], [delegate(0)])], [graph])


@pytest.fixture(scope="module")
def modules(
    native: NativeRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, PteModule]]:
    folder = tmp_path_factory.mktemp("inputs")
    loaded = {width: loaded_from(folder, native, width) for width in ("i32", "i64")}
    yield loaded
    for module in loaded.values():
        module.unload()


def loaded_from(folder: Path, native: NativeRunner, width: str) -> PteModule:
    path = folder / f"{width}.pte"
    path.write_bytes(doubled_integers(width))
    return wait(load(path, native.device))


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
        ([[[1, 2], [3]]], "input 0 is no array"),
        ([[1, 2, 3]], "dim 0 is 3, above its maximum 2"),
        ([[1]], "dim 0 is 1, but it is fixed at 2"),
        ([[[1, 2]]], "rank 2"),
        ([np.zeros(0, int)], "dim 0 is 0"),
    ],
)
def test_what_is_no_input_is_refused(
    modules: dict[str, PteModule], inputs: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        wait(modules["i64"].run(inputs))
