"""Graphs that lie: each fault has its own text, and the engine works on after it."""

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I64
from py_runtime.base.errors import GraphError, InpageError
from py_runtime.graph import Graph
from py_runtime.graph.buffers import measure
from py_runtime.program.json_format import dump_program, load_program
from py_runtime.program.writer import ProgramWriter
from tests.json_lies import Document, drop, put
from tests.runners import NativeRunner, wait


def honest() -> Document:
    """values: 0 x, 1 weight, 2 out, 3 eps; one op; used as the base of every lie."""
    writer = ProgramWriter()
    x = writer.input("x", (1, 4, 8), F32, dynamic=(1,))
    weight = writer.constant("weight", np.ones(8, np.float32))
    out = writer.tensor((1, 4, 8), F32, "out")
    writer.op("et_vk.rms_norm.default", x, weight, 1e-5, out)
    writer.output(out)
    document: Document = json.loads(dump_program(writer.program()))
    return document


def add_op(name: str, *args: int) -> Callable[[Document], None]:
    return lambda document: document["ops"].append({"op": name, "args": list(args)})


def add_value(**value: Any) -> Callable[[Document], None]:
    return lambda document: document["values"].append(value)


RMS = "et_vk.rms_norm.default"
LIES: dict[str, tuple[list[Callable[[Document], None]], str]] = {
    "format": ([put("format", "zip")], "the graph's format is 'zip', not 'inpage-graph'"),
    "version": ([put("version", 2)], "the graph has format version 2; this engine reads 1"),
    "no values": ([drop("values")], "graph has no 'values'"),
    "values no list": ([put("values", 3)], "graph.values must be a list, got 3"),
    "a text of 40": ([put("values", "x" * 38)], f"graph.values must be a list, got '{'x' * 38}'"),
    "a longer text": (
        [put("values", "x" * 39)],
        f"graph.values must be a list, got '{'x' * 36}...",
    ),
    "dims below int64": (
        [put("values", 0, "dims", [1, -(2**63) - 1, 8])],
        f"graph.values[0].dims[1] must be an int64, got {-(2**63) - 1}",
    ),
    "value no object": ([put("values", 0, [])], "graph.values[0] must be an object, got []"),
    "unknown kind": (
        [put("values", 3, "kind", "complex")],
        "graph.values[3] has the unknown kind 'complex'; known: tensor, symint, int, double, "
        "bool, string, null, int_list, double_list, bool_list, value_list",
    ),
    "unknown dtype": (
        [put("values", 0, "dtype", "f8")],
        "graph.values[0] has the unknown dtype 'f8'; known: f32, i32, i64, bool, u8, i8, f16",
    ),
    "dims no ints": (
        [put("values", 0, "dims", [1, 4.0, 8])],
        "graph.values[0].dims[1] must be an int64, got 4.0",
    ),
    "bool for int": (
        [put("values", 0, "dims", [True, 4, 8])],
        "graph.values[0].dims[0] must be an int64, got True",
    ),
    "int past int64": (
        [put("values", 0, "dims", [2**63, 4, 8])],
        "graph.values[0].dims[0] must be an int64, got 9223372036854775808",
    ),
    "dim 0": (
        [put("values", 0, "dims", [1, 0, 8])],
        "value 0 'x' has dims [1, 0, 8]; every dim must be at least 1",
    ),
    "dim -1": (
        [put("values", 0, "dims", [1, -1, 8])],
        "value 0 'x' has dims [1, -1, 8]; every dim must be at least 1",
    ),
    "2^31 elements": (
        [put("values", 0, "dims", [2, 2**15, 2**15])],
        "value 0 'x' has 2147483648 elements; at most 2147483647 can be indexed",
    ),
    "product past 2^63": (
        [put("values", 0, "dims", [2**40, 2**40, 1])],
        f"value 0 'x' has {2**80} elements; at most 2147483647 can be indexed",
    ),
    "rank 9": ([put("values", 0, "dims", [1] * 9)], "value 0 'x' has rank 9; at most 8"),
    "constant and state": (
        [put("values", 1, "state", True)],
        "value 1 'weight' is both a constant and zero-initialised state; choose one",
    ),
    "dangling argument": (
        [put("ops", 0, "args", [0, 1, 3, 77])],
        "op 0 (et_vk.rms_norm.default) refers to value 77; the graph has values 0 to 3",
    ),
    "negative id": (
        [put("ops", 0, "args", [-1, 1, 3, 2])],
        "op 0 (et_vk.rms_norm.default) refers to value -1; the graph has values 0 to 3",
    ),
    "dangling input": (
        [put("inputs", 0, "value", 9)],
        "input 0 refers to value 9; the graph has values 0 to 3",
    ),
    "dangling output": (
        [put("outputs", [4])],
        "output 0 refers to value 4; the graph has values 0 to 3",
    ),
    "dangling list entry": (
        [add_value(kind="value_list", value=[0, 8])],
        "value 4 refers to value 8; the graph has values 0 to 4",
    ),
    "nested list": (
        [add_value(kind="value_list", value=[0]), add_value(kind="value_list", value=[4])],
        "value 5 holds the value list 4; lists do not nest",
    ),
    "constant as input": (
        [put("inputs", 0, "value", 1)],
        "input 0 is value 1 'weight', a constant",
    ),
    "double as input": (
        [put("inputs", 0, "value", 3)],
        "input 0 is value 3, neither a tensor nor a SymInt",
    ),
    "input twice": (
        [lambda d: d["inputs"].append({"value": 0, "dynamic": []})],
        "a value is twice among the inputs",
    ),
    "dynamic dim past the rank": (
        [put("inputs", 0, "dynamic", [3])],
        "input 0 says dims [3] are dynamic, but value 0 'x' has rank 3",
    ),
    "double as output": (
        [put("outputs", [3])],
        "output 0 is value 3, neither a tensor nor a SymInt",
    ),
    "output nobody makes": (
        [put("ops", [])],
        "output 0 is value 2 'out', which no op produces",
    ),
    "cycle": (
        [
            add_value(kind="tensor", dtype="f32", dims=[1, 4, 8], name="later"),
            put("ops", 0, "args", [4, 1, 3, 2]),
            add_op(RMS, 2, 1, 3, 4),
        ],
        "op 0 (et_vk.rms_norm.default) uses value 4 'later' before any op has produced it",
    ),
    "own output as argument": (
        [put("ops", 0, "args", [2, 1, 3, 2])],
        "op 0 (et_vk.rms_norm.default) uses value 2 'out' before any op has produced it",
    ),
    "written twice": (
        [add_op(RMS, 0, 1, 3, 2)],
        "op 1 (et_vk.rms_norm.default) writes value 2 'out', which is not its own",
    ),
    "writes an input": (
        [put("ops", 0, "args", [0, 1, 3, 0])],
        "op 0 (et_vk.rms_norm.default) writes value 0 'x', which is not its own",
    ),
    "no arguments": ([put("ops", 0, "args", [])], "op 0 (et_vk.rms_norm.default) has no arguments"),
    "unknown ops": (
        [
            put("ops", 0, "op", "aten.nonsense.default"),
            add_value(kind="tensor", dtype="f32", dims=[1], name=""),
            add_op("aten.folly.default", 0, 4),
        ],
        "the graph uses ops that this engine does not have: aten.folly.default, "
        "aten.nonsense.default",
    ),
    "too few arguments": (
        [put("ops", 0, "args", [0, 1, 2])],
        "op 0 (et_vk.rms_norm.default) has 3 arguments; it takes 4: x, weight, eps, out",
    ),
    "wrong kind of argument": (
        [put("ops", 0, "args", [0, 3, 3, 2])],
        "op 0 (et_vk.rms_norm.default): argument 'weight' (value 3) is a double; it must be "
        "a tensor",
    ),
    "wrong scalar": (
        [put("values", 3, {"kind": "string", "value": "tiny"})],
        "op 0 (et_vk.rms_norm.default): argument 'eps' (value 3) is a string; it must be a number",
    ),
    "wrong dtype": (
        [put("values", 0, "dtype", "i64")],
        "op 0 (et_vk.rms_norm.default): argument 'x' (value 0 'x') is i64; it must be f32",
    ),
    "wrong rank": (
        [put("values", 1, "dims", [1, 8])],
        "op 0 (et_vk.rms_norm.default): argument 'weight' (value 1 'weight') has rank 2; it must "
        "be 1",
    ),
    "shapes that do not fit": (
        [put("values", 1, "dims", [7])],
        "op 0 (et_vk.rms_norm.default): rows of [1, 4, 8] do not fit a weight of [7]",
    ),
    "missing constant": (
        [put("values", 1, "constant", "elsewhere")],
        "value 1 'weight' needs the constant 'elsewhere', which is missing",
    ),
    "output smaller than the result": (
        [put("values", 2, "dims", [1, 3, 8])],
        "value 2 'out': dim 1 is 4, above its maximum 3 (dims [1, 4, 8], at most [1, 3, 8])",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_each_lie_is_named(lie: str, native: NativeRunner) -> None:
    changes, text = LIES[lie]
    document = copy.deepcopy(honest())
    for change in changes:
        change(document)
    before = native.device.counters.buffers_alive
    with pytest.raises(GraphError) as caught:
        load_and_drop(native, json.dumps(document))
    assert str(caught.value) == text
    assert native.device.counters.buffers_alive == before, "nothing stays half-loaded"
    load_and_drop(native, json.dumps(honest()))


def load_and_drop(native: NativeRunner, text: str) -> None:
    constants = {"weight": np.ones(8, np.float32)}
    wait(Graph.load(native.device, load_program(text), constants)).unload()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the graph is not JSON: Expecting value"),
        ("[", "the graph is not JSON: Expecting value"),
        ("[]", "graph must be an object, got []"),
        ("[" * 100_000, "the graph is not JSON: maximum recursion depth"),
        (b"\xff\xfe\x00", "the graph is not JSON"),
        ('{"format": NaN}', "graph.format must be a string, got nan"),
    ],
)
def test_what_is_no_graph_at_all(text: str | bytes, words: str) -> None:
    with pytest.raises(GraphError) as caught:
        load_program(text)
    assert str(caught.value).startswith(words)


def test_a_constant_of_another_shape_or_dtype(native: NativeRunner) -> None:
    program = load_program(json.dumps(honest()))
    for data, words in (
        (np.ones(9, np.float32), "'weight' is float32 [9]"),
        (np.ones(8, np.float64), "'weight' is float64 [8]"),
        (np.ones(8, np.int64), "'weight' is int64 [8]"),
    ):
        with pytest.raises(GraphError, match=r"value 1 'weight' is f32 \[8\], but its") as caught:
            wait(Graph.load(native.device, program, {"weight": data}))
        assert words in str(caught.value)


def test_a_tensor_past_the_devices_limits(native: NativeRunner) -> None:
    limit = native.device.limits["max_storage_buffer_binding_size"]
    document = honest()
    rows = limit // 32 + 1
    for value_id in (0, 2):
        document["values"][value_id]["dims"] = [1, rows, 8]
    with pytest.raises(InpageError, match=f"wants {rows * 32} bytes; this device allows"):
        load_and_drop(native, json.dumps(document))
    load_and_drop(native, json.dumps(honest()))


def test_an_unknown_op_is_named_without_a_gpu_too() -> None:
    document = honest()
    document["ops"][0]["op"] = "aten.unheard_of.default"
    with pytest.raises(GraphError, match=r"ops that this engine does not have: aten.unheard_of"):
        measure(load_program(json.dumps(document)))


def test_every_kind_survives_json() -> None:
    writer = ProgramWriter("kinds")
    x = writer.input("x", (1, 4), I64, dynamic=(1,))
    writer.symint_input("n")
    writer.state("cache", (2, 2), F32)
    literals = [1, 2.5, True, "text", None, [1, 2], [0.5, 1.0], [True, False], [x, 3], []]
    for literal in literals:
        writer._arg(literal)
    program = writer.program()
    assert load_program(dump_program(program)) == program


def test_numbers_may_come_as_another_kind(native: NativeRunner) -> None:
    """Exporters store equal numbers once: an eps of 0 may be the int, the double or the bool."""
    for value in ({"kind": "int", "value": 1}, {"kind": "bool", "value": True}):
        document = honest()
        document["values"][3] = value
        load_and_drop(native, json.dumps(document))
