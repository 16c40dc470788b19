"""The reading of a file: methods, constants, programs, and the module that runs them."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import GraphError, InpageError, InputError
from py_runtime.program import NullValue, TensorValue
from py_runtime.pte import PteModule, PteProgram, inspect_pte, load, open_pte
from py_runtime.pte import reader as pte_reader
from py_runtime.pte.flatbuffer import Budget
from tests.pte.memory_source import MemorySource
from tests.pte.written import (
    Scalar,
    call_delegate,
    call_kernel,
    cut_at_a_symint,
    delegate,
    integer,
    method,
    pte,
    tensor,
    u8,
    union,
    vk_call,
    vk_graph,
    vk_int,
    vk_named,
    vk_tensor,
)
from tests.runners import NativeRunner, wait

FILES = sorted((Path(__file__).parent / "files").glob("*.pte"))
VECTOR = np.array([1, 2, 3, 4], np.float32)


def open_bytes(data: bytes) -> PteProgram:
    return wait(open_pte(MemorySource(data)))


def doubling(*more_values: Any, copies: bool = False, **changed: Any) -> bytes:
    """forward(x) = x + x, f32 [4]; and into x itself where it copies."""
    values = [vk_tensor("f32", 4), vk_int(1), vk_tensor("f32", 4)]
    graph = vk_graph(values, [vk_call("aten.add.Tensor", 0, 0, 1, 2)], [0], [2])
    parts: dict[str, Any] = {
        "name": "forward",
        "values": [tensor("f32", 4), tensor("f32", 4), union(3, {0: u8(0)}), *more_values],
        "inputs": [0],
        "outputs": [0 if copies else 1],
        "calls": [call_delegate(0, 0, 1), *([call_kernel(0, 0, 1, 2, 0)] if copies else [])],
        "delegates": [delegate(0)],
        "operators": ["aten::copy_"],
    }
    return pte([method(**{**parts, **changed})], [graph])


# Reading -----------------------------------------------------------------------------------------


def test_weights_are_not_read() -> None:
    values = [vk_tensor("f32", 1 << 20), vk_tensor("f32", 1 << 20, constant=0), vk_int(1)]
    graph = vk_graph(
        [*values, vk_tensor("f32", 1 << 20)],
        [vk_call("aten.add.Tensor", 0, 1, 2, 3)],
        [0],
        [3],
        [vk_named("key", 4 << 20)],
    )
    plan = method(
        "forward",
        [tensor("f32", 1 << 20)] * 2,
        [0],
        [1],
        [call_delegate(0, 0, 1)],
        [delegate(0)],
    )
    source = MemorySource(pte([plan], [graph, bytes(4 << 20)], {"key": 1}))
    step = wait(open_pte(source)).methods["forward"].delegate
    assert step.ranges["key"].nbytes == 4 << 20
    assert source.bytes_read < 4096


def test_constant_methods_give_values() -> None:
    numbers = np.array([3, 1, 2], np.int64)
    a_list = json.dumps([1, {"type": "builtins.list"}])
    file = pte(
        [
            method("get_max_seq_len", [integer(32)], [], [0]),
            method("get_eos_ids", [integer(2), integer(3)], [], [0, 1], output_spec=a_list),
            method("get_one", [integer(7)], [], [0], output_spec=a_list),
            method("use_kv_cache", [union(3, {0: u8(1)})], [], [0]),
            method("scale", [union(4, {0: Scalar("d", 0.5)})], [], [0]),
            method("kind", [union(6, {0: "toy"})], [], [0]),
            method("nothing", [union(1, {})], [], [0]),
            method("order", [tensor("i64", 3, buffer=1)], [], [0]),
            method("none", [tensor("f32", 0, 2, buffer=1)], [], [0]),
        ],
        [bytes(16) + numbers.tobytes()],
        constants=(0, [0, 16]),
    )
    constants = open_bytes(file).constants
    order, none = constants.pop("order"), constants.pop("none")
    assert isinstance(order, np.ndarray)
    assert isinstance(none, np.ndarray)
    assert none.dtype == np.float32
    assert none.shape == (0, 2)
    assert order.dtype == np.int64
    assert order.tolist() == [3, 1, 2]
    assert constants == {
        "get_max_seq_len": 32,
        "get_eos_ids": [2, 3],
        "get_one": [7],
        "use_kv_cache": True,
        "scale": 0.5,
        "kind": "toy",
        "nothing": None,
    }
    assert open_bytes(file).describe()["constants"]["order"] == [3, 1, 2]


@pytest.mark.parametrize("is_hash", [True, False])
def test_a_cache_of_zeros_is_state(is_hash: bool) -> None:
    """A constant that is written in place and has the key of zeros is not uploaded.

    Prepacks vanish.
    """
    shape, zeros = (1, 2, 1, 4), bytes(32)
    key = hashlib.sha256(zeros).hexdigest() if is_hash else "zeros"
    values = [
        vk_tensor("f32", 1, 1, 1, 4),
        vk_tensor("f32", *shape, constant=0),
        vk_tensor("f32", *shape),
        vk_int(1),
        vk_tensor("f32", *shape),
        vk_tensor("f32", *shape, constant=0),
        vk_tensor("f32", *shape),
    ]
    chain = [
        vk_call("et_vk.prepack.default", 1, 2),
        vk_call("update_cache.default", 0, 2, 3, 4),
        vk_call("aten.relu.default", 5, 6),
    ]
    graph = vk_graph(values, chain, [0], [4], [vk_named(key, 32)])
    plan = method(
        "forward",
        [tensor("f32", 1, 1, 1, 4), tensor("f32", *shape)],
        [0],
        [1],
        [call_delegate(0, 0, 1)],
        [delegate(0)],
    )
    program = open_bytes(pte([plan], [graph, zeros], {key: 1})).methods["forward"].delegate.program
    assert [call.name for call in program.ops] == ["update_cache.default", "aten.relu.default"]
    source, cache, read_only = (program.values[at] for at in (1, 2, 5))
    assert isinstance(source, NullValue)
    assert isinstance(read_only, TensorValue)
    assert read_only.constant == key
    assert isinstance(cache, TensorValue)
    assert (cache.state, cache.constant) == ((True, None) if is_hash else (False, "zeros"))


def test_what_a_file_says_of_itself() -> None:
    described = open_bytes(doubling(copies=True)).describe()
    assert json.loads(json.dumps(described)) == described
    vector = {"dtype": "float32", "dims": [4], "dynamic": False}
    assert described["methods"]["forward"] == {
        "inputs": [vector],
        "outputs": [vector],
        "mutated_inputs": [0],
        "ops": {"aten.add.Tensor": 1, "aten::copy_": 1},
        "constants": {"count": 0, "bytes": 0},
        "backends": ["VulkanBackend"],
    }
    assert described["unsupported"] == []


def test_a_live_integer_is_described() -> None:
    """The exporter writes null for it."""
    ends = [tensor("f32", 4), union(1, {}), tensor("f32", 4, dynamic=True), union(1, {})]
    call = call_delegate(0, 0, 1, 2)
    plan = method("forward", ends, [0, 1, 3], [2], [call], [delegate(0)])
    described = open_bytes(pte([plan], [cut_at_a_symint()])).describe()
    _, live, none = described["methods"]["forward"]["inputs"]
    assert live == {"dtype": "int", "dims": [], "dynamic": False}
    assert none == {"value": None}


def test_what_cannot_be_loaded_can_be_described() -> None:
    file = doubling(
        operators=["aten::unique_dim.out"],
        calls=[call_kernel(0, 0, 1), call_delegate(0, 0, 1)],
        delegates=[delegate(0, "QnnBackend")],
    )
    described = wait(inspect_pte(MemorySource(file)))
    assert described["unsupported"] == [
        "aten::unique_dim.out (outside the delegate)",
        "the backend QnnBackend",
    ]
    assert described["methods"]["forward"]["ops"] == {"aten::unique_dim.out": 1}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_stock_files_are_far_from_every_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = []

    class Counting(Budget):
        def spend(self, items: int) -> None:
            spent.append(items)
            super().spend(items)

    monkeypatch.setattr(pte_reader, "Budget", Counting)
    source = MemorySource(path.read_bytes(), path.name)
    described = wait(inspect_pte(source))
    assert described["methods"]
    assert sum(spent) < source.bytes_read / 2


# Running -----------------------------------------------------------------------------------------


@pytest.fixture
def module(native: NativeRunner) -> Iterator[PteModule]:
    """forward(x, 3) doubles x, in place too; the 3 was fixed by the export."""
    file = doubling(integer(3), copies=True, inputs=[0, 3])
    loaded = wait(load(MemorySource(file), native.device))
    yield loaded
    loaded.unload()


def test_an_array_is_changed_in_place(module: PteModule) -> None:
    given = VECTOR.copy()
    (output,) = wait(module.run([given, 3]))
    assert output is given
    assert given.tolist() == [2, 4, 6, 8]


def test_what_cannot_be_changed_in_place_is_left_alone(module: PteModule) -> None:
    fixed = VECTOR.copy()
    fixed.flags.writeable = False
    (output,) = wait(module.run([fixed, 3]))
    assert fixed.tolist() == [1, 2, 3, 4]
    assert output.tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([VECTOR], "takes 2 inputs, got 1"),
        ([VECTOR, 4], "input 1 was fixed at 3 by the export, got 4"),
        ([VECTOR, 3.0], "input 1 was fixed at 3"),
        ([VECTOR.astype(np.float64), 3], "input 0 takes float32, got float64"),
        ([VECTOR[:3], 3], r"input 0 takes \[4\], got \[3\]"),
        ([[[1.0], [2.0, 3.0]], 3], "input 0 is not an array"),
    ],
)
def test_inputs_that_do_not_fit(module: PteModule, inputs: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wait(module.run(inputs))
    assert wait(module.run([VECTOR.copy(), 3]))[0].tolist() == [2, 4, 6, 8]


def test_a_device_that_binds_less(native: NativeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamic dims that were exported without a bound look like this."""
    monkeypatch.setitem(native.device.limits, "max_storage_buffer_binding_size", 8)
    message = "takes 16 bytes; this device binds at most 8; export the model with smaller dims"
    with pytest.raises(GraphError, match=message):
        wait(load(MemorySource(doubling()), native.device))


def test_only_the_methods_that_are_wanted_are_loaded(native: NativeRunner) -> None:
    plans = [
        method(name, [tensor("f32", 4)] * 2, [0], [1], [call_delegate(0, 0, 1)], [delegate(0)])
        for name in ("forward", "other")
    ]
    values = [vk_tensor("f32", 4), vk_int(1), vk_tensor("f32", 4)]
    graph = vk_graph(values, [vk_call("aten.add.Tensor", 0, 0, 1, 2)], [0], [2])
    source = MemorySource(pte(plans, [graph]))
    module = wait(load(source, native.device, methods=["other"]))
    assert module.methods == ["other"]
    with pytest.raises(InputError, match="'forward' was not loaded; loaded are: other"):
        wait(module.run([VECTOR]))
    with pytest.raises(InputError, match="no method 'third'; it has forward, other"):
        wait(module.run([VECTOR], "third"))
    assert wait(module.run([VECTOR], "other"))[0].tolist() == [2, 4, 6, 8]
    module.unload()
    with pytest.raises(GraphError, match="was unloaded"):
        wait(module.run([VECTOR], "other"))


def test_a_load_that_fails_leaves_nothing_on_the_gpu(native: NativeRunner) -> None:
    """The first method loads; the second's op takes other arguments."""
    values = [vk_tensor("f32", 4), vk_int(1), vk_tensor("f32", 4)]
    good = vk_graph(values, [vk_call("aten.add.Tensor", 0, 0, 1, 2)], [0], [2])
    bad = vk_graph(values, [vk_call("aten.add.Tensor", 0, 2)], [0], [2])
    plans = [
        method(name, [tensor("f32", 4)] * 2, [0], [1], [call_delegate(0, 0, 1)], [delegate(blob)])
        for blob, name in enumerate(("forward", "other"))
    ]
    before = native.device.counters.buffers_alive
    with pytest.raises(GraphError, match="has 2 arguments"):
        wait(load(MemorySource(pte(plans, [good, bad])), native.device))
    assert native.device.counters.buffers_alive == before


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InpageError, match=r"absent\.pte cannot be read: No such file"):
        wait(load(tmp_path / "absent.pte"))


def test_a_method_gives_numbers_and_its_own_inputs_too(native: NativeRunner) -> None:
    file = doubling(integer(5), outputs=[1, 3, 0])
    module = wait(load(MemorySource(file), native.device))
    doubled, number, same = wait(module.run([VECTOR]))
    assert (doubled.tolist(), number, same.tolist()) == ([2, 4, 6, 8], 5, [1, 2, 3, 4])
    module.unload()
