"""Programs at the very limits of what is sound, and what a graph in JSON may leave out."""

import json
from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import DTYPES, F16, F32, I64
from py_runtime.base.errors import GraphError
from py_runtime.base.model_errors import ModelError
from py_runtime.base.shapes import MAX_ELEMENTS
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NullValue,
    OpCall,
    Program,
    ProgramInput,
    StringValue,
    SymIntValue,
    TensorValue,
    Value,
    ValueListValue,
    as_constant,
    as_literal,
    check_program,
)
from py_runtime.program.decoder_form import ROWS_OF_POSITIONS, check_context, decoder_sizes
from py_runtime.program.json_format import dump_program, load_program
from py_runtime.program.program import INT32_MAX, INT32_MIN, MAX_RANK
from py_runtime.program.writer import ProgramWriter


def program(*values: Value, **parts: Any) -> Program:
    return Program(values, **{"ops": (), "inputs": (), "outputs": (), **parts})


def is_sound(given: Program) -> bool:
    try:
        check_program(given)
    except GraphError:
        return False
    return True


def tensor(*dims: int, **options: Any) -> TensorValue:
    return TensorValue(F32, dims, **options)


@pytest.mark.parametrize(
    ("value", "sound"),
    [
        (tensor(*[1] * MAX_RANK), True),
        (tensor(*[1] * (MAX_RANK + 1)), False),
        (tensor(), True),
        (tensor(1), True),
        (tensor(0), False),
        (tensor(MAX_ELEMENTS), True),
        (tensor(2, 2**30), False),
        (tensor(3, constant="c"), True),
        (tensor(3, state=True), True),
        (tensor(3, constant="c", state=True), False),
        (SymIntValue(INT32_MIN), True),
        (SymIntValue(INT32_MAX), True),
        (SymIntValue(INT32_MIN - 1), False),
        (SymIntValue(INT32_MAX + 1), False),
        (IntValue(2**40), True),
        (ValueListValue((-1,)), False),
        (ValueListValue((1,)), False),
        (ValueListValue((0,)), False),  # a list within a list
    ],
)
def test_a_value(value: Value, sound: bool) -> None:
    assert is_sound(program(value)) == sound


X, OUT, C = tensor(2, 3, name="x"), tensor(2, 3), tensor(2, 3, constant="c")
RELU = OpCall("relu", (0, 1))


@pytest.mark.parametrize(
    ("given", "sound"),
    [
        (program(X, OUT, ops=(RELU,), inputs=(ProgramInput(0),), outputs=(1,)), True),
        (program(X, OUT, ops=(RELU,), outputs=(1,)), False),  # nobody gives x
        (program(C, OUT, ops=(RELU,), outputs=(1,)), True),
        (program(tensor(2, 3, state=True), OUT, ops=(RELU,), outputs=(1,)), True),
        (program(C, OUT, outputs=(1,)), False),  # nobody computes it
        (program(C, OUT, outputs=(0,)), True),
        (program(C, OUT, outputs=(2,)), False),
        (program(C, OUT, outputs=(-1,)), False),
        (program(C, C, ops=(RELU,)), False),  # writes a constant
        (program(C, OUT, ops=(RELU, RELU)), False),  # twice
        (program(C, IntValue(3), ops=(RELU,)), True),  # a number that is known already
        (program(C, OUT, ops=(OpCall("relu", ()),)), False),
        (program(C, OUT, ops=(OpCall("relu", (0, 2)),)), False),
        (program(C, OUT, ops=(OpCall("relu", (0, -1)),)), False),
        (program(C, StringValue("x"), outputs=(1,)), False),
        (program(SymIntValue(), inputs=(ProgramInput(0),), outputs=(0,)), True),
        (program(StringValue("x"), inputs=(ProgramInput(0),)), False),
        (program(C, inputs=(ProgramInput(0),)), False),
        (program(X, inputs=(ProgramInput(1),)), False),
        (program(X, inputs=(ProgramInput(0), ProgramInput(0))), False),
        (program(X, inputs=(ProgramInput(0, frozenset({0, 1})),)), True),
        (program(X, inputs=(ProgramInput(0, frozenset({2})),)), False),
        (program(X, inputs=(ProgramInput(0, frozenset({-1})),)), False),
    ],
)
def test_a_chain(given: Program, sound: bool) -> None:
    assert is_sound(given) == sound


def test_lists_are_read_and_written_item_by_item() -> None:
    values = (C, tensor(1, name="a"), tensor(1), ValueListValue((1, 2)), ValueListValue((0, 0)))
    given = program(*values, ops=(OpCall("split", (4, 3)),), outputs=(1, 2))
    check_program(given)
    assert [*given.reads(given.ops[0])] == [0, 0]
    assert [*given.writes(given.ops[0])] == [1, 2]
    assert [given.label(at) for at in (1, 2, 3)] == ["value 1 'a'", "value 2", "value 3"]
    assert [(at, name) for at, _, name in given.constants()] == [(0, "c")]
    assert given.name == "graph"
    assert not given.values[1].persistent  # type: ignore[union-attr]


def test_plain_python_values_become_literals() -> None:
    given = [None, True, 3, 2.5, "x", [1], object()]
    wanted = [NullValue(), BoolValue(True), IntValue(3), DoubleValue(2.5), StringValue("x")]
    assert [as_literal(each) for each in given] == [*wanted, None, None]
    assert type(as_literal(True)) is BoolValue
    assert [as_constant(each) for each in (C, X, IntValue(1))] == [C, None, None]


def test_a_writer_tells_lists_apart() -> None:
    writer = ProgramWriter()
    a = writer.tensor((1,), F32)
    writer.op("op", [1, 2], [True, False], [1, 2.5], [True, 1], [], [a, 7], a, source="here")
    call = writer.program().ops[0]
    values = [writer.program().values[arg] for arg in call.args]
    assert values[:5] == [
        IntListValue((1, 2)),
        BoolListValue((True, False)),
        DoubleListValue((1.0, 2.5)),
        DoubleListValue((1.0, 1.0)),
        IntListValue(()),
    ]
    assert values[5] == ValueListValue((a.id, call.args[5] - 1))
    assert call.source == "here"
    with pytest.raises(GraphError, match="cannot be an argument of an op"):
        writer.op("op", object())


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_a_constant_has_the_dtype_of_its_data(dtype: Any) -> None:
    writer = ProgramWriter()
    writer.constant("c", np.zeros((2, 3), dtype.host))
    assert writer.program().values[0] == TensorValue(dtype, (2, 3), "c", constant="c")
    assert writer.program().values[0].gpu_bytes == 6 * dtype.gpu.itemsize  # type: ignore[union-attr]


# In JSON ------------------------------------------------------------------------------------------

LEAST: dict[str, Any] = {
    "format": "inpage-graph",
    "version": 1,
    "name": "g",
    "values": [{"kind": "tensor", "dtype": "f32", "dims": [2, 3]}],
    "ops": [],
    "inputs": [{"value": 0, "dynamic": [1]}],
    "outputs": [0],
}


def loaded(**changes: Any) -> Program:
    return load_program(json.dumps(LEAST | changes))


def test_what_may_be_left_out() -> None:
    found = loaded()
    assert found.values == (TensorValue(F32, (2, 3), "", None, False),)
    assert found.inputs == (ProgramInput(0, frozenset({1})),)
    whole = [
        {"kind": "tensor", "dtype": "f16", "dims": [4], "name": "n", "state": True},
        {"kind": "symint", "value": 5},
        {"kind": "symint", "value": 6, "name": "s"},
        {"kind": "tensor", "dtype": "i64", "dims": [], "constant": "c", "state": False},
        {"kind": "null"},
    ]
    changes = {
        "values": whole,
        "ops": [{"op": "a", "args": [4, 4]}, {"op": "b", "args": [4, 4], "source": "x.py"}],
        "inputs": [{"value": 1, "dynamic": []}, {"value": 2, "dynamic": []}],
        "outputs": [],
    }
    with pytest.raises(GraphError, match="which is not its own"):  # nothing is written to null
        loaded(**changes)
    changes["ops"] = []
    assert loaded(**changes).values == (
        TensorValue(F16, (4,), "n", None, True),
        SymIntValue(5, ""),
        SymIntValue(6, "s"),
        TensorValue(I64, (), "", "c", False),
        NullValue(),
    )


def test_the_source_of_an_op_may_be_left_out() -> None:
    values = [*LEAST["values"], {"kind": "tensor", "dtype": "f32", "dims": [2, 3]}]
    for given, source in (({}, ""), ({"source": "x.py"}, "x.py")):
        found = loaded(values=values, ops=[{"op": "a", "args": [0, 1], **given}], outputs=[1])
        assert found.ops == (OpCall("a", (0, 1), source),)
        assert load_program(dump_program(found)) == found


VALUES: list[Value] = [
    tensor(2, 3, name="t", constant="c"),
    tensor(2, 3, state=True),
    SymIntValue(7, "s"),
    IntValue(-(2**63)),
    IntValue(2**63 - 1),
    DoubleValue(0.1),
    BoolValue(True),
    StringValue("x"),
    NullValue(),
    IntListValue((1, 2)),
    DoubleListValue((1.5,)),
    BoolListValue((True, False)),
    ValueListValue((0, 1)),
]


def test_every_kind_comes_back() -> None:
    given = program(*VALUES, inputs=(ProgramInput(2),), outputs=(0,))
    assert load_program(dump_program(given)) == given


KINDS = [  # of values, with one that is not of the kind
    ("int", 1.0),
    ("int", True),
    ("int", 2**63),
    ("int", -(2**63) - 1),
    ("double", "1"),
    ("double", True),
    ("double", 10**400),
    ("bool", 1),
    ("string", None),
    ("symint", 1.5),
    ("int_list", [1, 2.5]),
    ("int_list", 1),
    ("double_list", ["x"]),
    ("bool_list", [1]),
    ("value_list", [None]),
    ("something", 1),
]


@pytest.mark.parametrize(("kind", "value"), KINDS)
def test_a_value_of_another_kind(kind: str, value: Any) -> None:
    with pytest.raises(GraphError, match=r"graph\.values\[1\]"):
        loaded(values=[*LEAST["values"], {"kind": kind, "value": value}])


@pytest.mark.parametrize("key", LEAST)
def test_what_may_not_be_left_out(key: str) -> None:
    with pytest.raises(GraphError, match=f"graph has no '{key}'"):
        load_program(json.dumps({name: part for name, part in LEAST.items() if name != key}))


@pytest.mark.parametrize("change", [{"format": "other"}, {"version": 2}, {"version": 0}])
def test_another_format(change: dict[str, Any]) -> None:
    with pytest.raises(GraphError, match="format"):
        loaded(**change)


# Decoders ----------------------------------------------------------------------------------------


def decoder(*, rows: tuple[int, ...] | None = None, **dims: tuple[int, ...]) -> Program:
    """tokens, position → logits, with rows where tokens bring some along."""
    sizes = {"tokens": (1, 9), "position": (1,), "logits": (1, 16)} | dims
    writer = ProgramWriter("toy")
    writer.input("tokens", sizes["tokens"], I64, dynamic=(1,))
    writer.input("position", sizes["position"], I64)
    if rows is not None:
        writer.input("rows", rows, F32, dynamic=(1,))
    writer.output(writer.tensor(sizes["logits"], F32))
    return writer.program()


def test_sizes_of_a_decoder() -> None:
    assert decoder_sizes(decoder()) == (9, 16)
    assert decoder_sizes(decoder(rows=(1, 9, 5))) == (9, 16)
    for wrong in (
        decoder(rows=(2, 9, 5)),
        decoder(rows=(9, 5)),
        decoder(tokens=(9,)),
        decoder(position=(1, 1)),
        decoder(logits=(1, 9, 16)),
    ):
        with pytest.raises(ModelError, match="is not a decoder"):
            decoder_sizes(wrong)


def test_one_token_at_a_time_needs_no_dynamic_length() -> None:
    for length, is_decoder in ((1, True), (2, False)):
        writer = ProgramWriter("toy")
        writer.input("tokens", (1, length), I64)
        writer.input("position", (1,), I64)
        writer.output(writer.tensor((1, 16), F32))
        if is_decoder:
            assert decoder_sizes(writer.program()) == (1, 16)
        else:
            with pytest.raises(ModelError, match="takes exactly 2 tokens"):
                decoder_sizes(writer.program())


@pytest.mark.parametrize("op", ROWS_OF_POSITIONS)
def test_every_position_of_the_context_has_its_row(op: str) -> None:
    """The rows are those of caches [1, rows, heads, columns] and of rotary tables [rows, columns].

    The op's own row in the registry says where an argument stands.
    """
    names = REGISTRY[op].args
    at = next(
        names.index(name) for name in ("k_cache", "cache", "cos", "freqs_cos") if name in names
    )
    writer = ProgramWriter("toy")
    given = [writer.state(f"s{number}", (3, 3, 3, 3), F32) for number in range(at + 1)]
    given[at] = writer.state("rows", (12, 4) if "cos" in names[at] else (1, 12, 2, 4), F32)
    writer.op(op, *given, writer.tensor((1,), F32))
    check_context("toy", 1, writer.program())
    check_context("toy", 12, writer.program())
    for context in (0, 13):
        with pytest.raises(ModelError, match="has room for 1 to 12"):
            check_context("toy", context, writer.program())


def test_without_any_op_of_positions_a_context_may_be_any() -> None:
    check_context("toy", INT32_MAX, program())
    with pytest.raises(ModelError):
        check_context("toy", 0, program())
