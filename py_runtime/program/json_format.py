"""The JSON form of a program: a writer, and a reader that trusts nothing."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from py_runtime.base.dtypes import DTYPES
from py_runtime.base.errors import GraphError
from py_runtime.base.short_texts import short
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
    check_program,
)

T = TypeVar("T")

FORMAT = "inpage-graph"
VERSION = 1
MAX_SHOWN = 40  # characters of what was found instead
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

KINDS: dict[str, type] = {
    "tensor": TensorValue,
    "symint": SymIntValue,
    "int": IntValue,
    "double": DoubleValue,
    "bool": BoolValue,
    "string": StringValue,
    "null": NullValue,
    "int_list": IntListValue,
    "double_list": DoubleListValue,
    "bool_list": BoolListValue,
    "value_list": ValueListValue,
}
KIND_OF = {kind: name for name, kind in KINDS.items()}


def dump_program(program: Program) -> str:
    """Write a program as JSON; load_program returns an equal one."""
    return json.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "name": program.name,
            "values": [_dump_value(value) for value in program.values],
            "ops": [
                {"op": call.name, "args": list(call.args), "source": call.source}
                for call in program.ops
            ],
            "inputs": [
                {"value": entry.value, "dynamic": sorted(entry.dynamic_dims)}
                for entry in program.inputs
            ],
            "outputs": list(program.outputs),
        }
    )


def load_program(text: str | bytes) -> Program:
    """Parse and check a program; raise GraphError with the place of the first fault."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GraphError(f"the graph is not JSON: {error}") from None
    root = _Node("graph", document)
    if root.get("format").text() != FORMAT:
        raise GraphError(f"the graph's format is {root.get('format').data!r}, not '{FORMAT}'")
    if root.get("version").integer() != VERSION:
        raise GraphError(
            f"the graph has format version {root.get('version').data}; this engine reads {VERSION}"
        )
    program = Program(
        values=root.get("values").each(_load_value),
        ops=root.get("ops").each(_load_op),
        inputs=root.get("inputs").each(_load_input),
        outputs=root.get("outputs").each(_Node.integer),
        name=root.get("name").text(),
    )
    check_program(program)
    return program


def _dump_value(value: Value) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": KIND_OF[type(value)]}
    if isinstance(value, TensorValue):
        entry |= {"dtype": value.dtype.name, "dims": list(value.dims), "name": value.name}
        if value.constant is not None:
            entry["constant"] = value.constant
        if value.state:
            entry["state"] = True
    elif isinstance(value, SymIntValue):
        entry |= {"value": value.initial, "name": value.name}
    elif isinstance(value, ValueListValue):
        entry["value"] = list(value.ids)
    elif isinstance(value, IntListValue | DoubleListValue | BoolListValue):
        entry["value"] = list(value.values)
    elif not isinstance(value, NullValue):
        entry["value"] = value.value
    return entry


class _Node:
    """A piece of the document that knows its place, for messages."""

    def __init__(self, where: str, data: Any) -> None:
        self.where = where
        self.data = data

    def get(self, key: str) -> "_Node":
        if not isinstance(self.data, dict):
            raise GraphError(f"{self.where} must be an object, got {short(self.data, MAX_SHOWN)}")
        if key not in self.data:
            raise GraphError(f"{self.where} has no '{key}'")
        return _Node(f"{self.where}.{key}", self.data[key])

    def has(self, key: str) -> bool:
        return isinstance(self.data, dict) and key in self.data

    def each(self, load: "Callable[[_Node], T]") -> tuple[T, ...]:
        if not isinstance(self.data, list):
            raise GraphError(f"{self.where} must be a list, got {short(self.data, MAX_SHOWN)}")
        return tuple(load(_Node(f"{self.where}[{at}]", item)) for at, item in enumerate(self.data))

    def integer(self) -> int:
        if type(self.data) is not int or not INT64_MIN <= self.data <= INT64_MAX:
            raise GraphError(f"{self.where} must be an int64, got {short(self.data, MAX_SHOWN)}")
        return self.data

    def double(self) -> float:
        try:
            if type(self.data) in (int, float):
                return float(self.data)
        except OverflowError:
            pass  # an int past the range of doubles
        raise GraphError(f"{self.where} must be a double, got {short(self.data, MAX_SHOWN)}")

    def boolean(self) -> bool:
        if type(self.data) is not bool:
            raise GraphError(
                f"{self.where} must be true or false, got {short(self.data, MAX_SHOWN)}"
            )
        return self.data

    def text(self) -> str:
        if not isinstance(self.data, str):
            raise GraphError(f"{self.where} must be a string, got {short(self.data, MAX_SHOWN)}")
        return self.data


def _load_value(node: _Node) -> Value:
    kind = node.get("kind").text()
    if kind not in KINDS:
        raise GraphError(f"{node.where} has the unknown kind '{kind}'; known: {', '.join(KINDS)}")
    if kind == "tensor":
        return _load_tensor(node)
    if kind == "null":
        return NullValue()
    value = node.get("value")
    match kind:
        case "symint":
            return SymIntValue(value.integer(), _optional_text(node, "name") or "")
        case "int":
            return IntValue(value.integer())
        case "double":
            return DoubleValue(value.double())
        case "bool":
            return BoolValue(value.boolean())
        case "string":
            return StringValue(value.text())
        case "int_list":
            return IntListValue(value.each(_Node.integer))
        case "double_list":
            return DoubleListValue(value.each(_Node.double))
        case "bool_list":
            return BoolListValue(value.each(_Node.boolean))
    return ValueListValue(value.each(_Node.integer))


def _load_tensor(node: _Node) -> TensorValue:
    dtype = node.get("dtype").text()
    if dtype not in DTYPES:
        raise GraphError(
            f"{node.where} has the unknown dtype '{dtype}'; known: {', '.join(DTYPES)}"
        )
    return TensorValue(
        dtype=DTYPES[dtype],
        dims=node.get("dims").each(_Node.integer),
        name=_optional_text(node, "name") or "",
        constant=_optional_text(node, "constant"),
        state=node.get("state").boolean() if node.has("state") else False,
    )


def _load_op(node: _Node) -> OpCall:
    return OpCall(
        name=node.get("op").text(),
        args=node.get("args").each(_Node.integer),
        source=_optional_text(node, "source") or "",
    )


def _load_input(node: _Node) -> ProgramInput:
    dynamic = node.get("dynamic").each(_Node.integer)
    return ProgramInput(node.get("value").integer(), frozenset(dynamic))


def _optional_text(node: _Node, key: str) -> str | None:
    return node.get(key).text() if node.has(key) else None
