"""Live scalars: where they come from, their arithmetic, and what kernels see of them."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import I64
from py_runtime.base.errors import GraphError, InputError
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter
from tests.graph.engine_graphs import decoder_like, load, norm_graph, rows, run
from tests.runners import NativeRunner, wait


@pytest.fixture(scope="module")
def device(native: NativeRunner) -> Device:
    return native.device


def test_accessors_refuse_what_is_no_symint(device: Device) -> None:
    graph = load(device, norm_graph())
    for access in (graph.read_symint, graph.symint_binding):
        with pytest.raises(GraphError, match="value 0 of graph 'graph' is not a SymInt"):
            access(0)
    with pytest.raises(GraphError, match="value 99 of graph 'graph' is not a tensor"):
        graph.live_dims(99)
    graph.unload()


def test_select_as_symint_reads_the_element_at_index_and_zeros(device: Device) -> None:
    """S3: [0, …, index, …, 0], negative index and dim against the live dims."""
    data = np.arange(24).reshape(2, 3, 4)
    for dim, index, wanted in ((0, 1, 12), (1, 2, 8), (2, -1, 3), (-1, 1, 1), (-2, -1, 8)):
        writer = ProgramWriter()
        x = writer.input("x", (2, 3, 4), I64)
        value = writer.symint()
        writer.op("et_vk.select_as_symint.default", x, dim, index, value)
        writer.output(value)
        graph = load(device, writer)
        assert run(graph, data)[0] == wanted
        graph.unload()


@pytest.mark.parametrize("dims", [(), (1,), (1, 1)])
def test_select_as_symint_of_the_only_element(device: Device, dims: tuple[int, ...]) -> None:
    writer = ProgramWriter()
    value = writer.symint()
    writer.op("et_vk.select_as_symint.default", writer.input("x", dims, I64), 0, 0, value)
    writer.output(value)
    graph = load(device, writer)
    assert run(graph, np.full(dims, 7))[0] == 7
    graph.unload()


def test_select_as_symint_wants_an_input() -> None:
    writer = ProgramWriter()
    x = writer.input("x", (4,), I64)
    copy, value = writer.tensor((4,), I64), writer.symint()
    writer.op("aten.clone.default", x, None, copy)
    writer.op("et_vk.select_as_symint.default", copy, 0, 0, value)
    writer.output(value)
    device = _NoDevice()
    with pytest.raises(GraphError, match="reads value 1 on the host; only an input can be"):
        wait(Graph.load(device, writer.program(), {}, target=PORTABLE))  # type: ignore[arg-type]


class _NoDevice:
    """A load that must fail before it touches the GPU."""

    limits = {  # noqa: RUF012
        "min_uniform_buffer_offset_alignment": 256,
        "max_compute_workgroups_per_dimension": 65535,
    }


@pytest.mark.parametrize(
    ("op", "a", "b", "wanted"),
    [
        ("add", 7, 5, 12), ("sub", 5, 7, -2), ("mul", -3, 4, -12),
        ("floordiv", 7, 2, 3), ("floordiv", -7, 2, -4), ("floordiv", 7, -2, -4),
    ],
)  # fmt: skip
def test_symint_arithmetic(device: Device, op: str, a: int, b: int, wanted: int) -> None:
    graph = load(device, _arithmetic(op))
    assert run(graph, a, b)[0] == wanted
    assert run(graph, a, np.array([b]))[0] == wanted, "one-element arrays are scalars too"
    graph.unload()


def _arithmetic(op: str) -> ProgramWriter:
    writer = ProgramWriter()
    a, b, out = writer.symint_input("a"), writer.symint_input("b"), writer.symint("out")
    writer.op(op, a, b, out)
    writer.output(out)
    return writer


@pytest.mark.parametrize(
    ("op", "a", "b", "text"),
    [
        ("floordiv", 1, 0, "op 0 (floordiv): 1 // 0: division by zero"),
        ("floordiv", -(2**31), -1, "op 0 (floordiv): the result 2147483648 is not an int32"),
        ("mul", 2**30, 2, "op 0 (mul): the result 2147483648 is not an int32"),
        ("add", 2**31, 0, "value 0 'a': 2147483648 is not an int32"),
        ("add", 1.5, 0, "input 0 is a SymInt and takes one integer, got 1.5"),
    ],
)
def test_symint_faults(device: Device, op: str, a: Any, b: int, text: str) -> None:
    graph = load(device, _arithmetic(op))
    run(graph, 8, 4)
    with pytest.raises(InputError) as caught:
        run(graph, a, b)
    assert str(caught.value) == text
    assert [graph.read_symint(value_id) for value_id in (0, 1)] == [8, 4]
    graph.unload()


def test_a_symints_uniform_is_its_value_and_twelve_zero_bytes(device: Device) -> None:
    writer, pos = decoder_like()
    graph = load(device, writer)
    run(graph, rows(1), np.array([37]))
    binding = graph.symint_binding(pos)
    stored = graph.arena.mirror[binding.offset : binding.offset + 16].view(np.int32)
    assert binding.size == 16
    np.testing.assert_array_equal(stored, [37, 0, 0, 0])
    graph.unload()
