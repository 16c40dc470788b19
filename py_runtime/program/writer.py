"""Writes programs by hand: the smallest exporter there is, for tests, tools and curious users.

writer = ProgramWriter()
x = writer.input("x", (1, 128, 64), F32, dynamic=(1,))
weight = writer.constant("weight", np.ones(64, np.float32))
out = writer.tensor((1, 128, 64), F32)
writer.op("et_vk.rms_norm.default", x, weight, 1e-5, out)
writer.output(out)
graph = await Graph.load(device, writer.program(), writer.constants)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.dtypes import BOOL, DTYPES, DType
from py_runtime.base.errors import GraphError
from py_runtime.base.shapes import Dims
from py_runtime.program import (
    BoolListValue,
    DoubleListValue,
    IntListValue,
    OpCall,
    Program,
    ProgramInput,
    SymIntValue,
    TensorValue,
    Value,
    ValueListValue,
    as_literal,
)

HOST_DTYPES = {dtype.host: dtype for dtype in DTYPES.values()}


@dataclass(frozen=True)
class Ref:
    """A value of the program being written."""

    id: int


class ProgramWriter:
    """A program written by hand; values come in the order they are asked for."""

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.constants: dict[str, np.ndarray] = {}
        self._values: list[Value] = []
        self._ops: list[OpCall] = []
        self._inputs: list[ProgramInput] = []
        self._outputs: list[int] = []

    def input(self, name: str, dims: Dims, dtype: DType, dynamic: Sequence[int] = ()) -> Ref:
        ref = self._add(TensorValue(dtype, tuple(dims), name))
        self._inputs.append(ProgramInput(ref.id, frozenset(dynamic)))
        return ref

    def symint_input(self, name: str) -> Ref:
        ref = self._add(SymIntValue(0, name))
        self._inputs.append(ProgramInput(ref.id))
        return ref

    def constant(self, name: str, data: np.ndarray) -> Ref:
        """Add a constant; the same name again means the same bytes in a second value."""
        self.constants[name] = data
        return self.declare_constant(name, data.shape, HOST_DTYPES[data.dtype])

    def declare_constant(self, name: str, dims: Dims, dtype: DType) -> Ref:
        """Add a constant whose data comes from elsewhere."""
        return self._add(TensorValue(dtype, tuple(dims), name, constant=name))

    def state(self, name: str, dims: Dims, dtype: DType) -> Ref:
        return self._add(TensorValue(dtype, tuple(dims), name, state=True))

    def tensor(self, dims: Dims, dtype: DType, name: str = "") -> Ref:
        return self._add(TensorValue(dtype, tuple(dims), name))

    def symint(self, name: str = "", initial: int = 0) -> Ref:
        return self._add(SymIntValue(initial, name))

    def op(self, name: str, *args: Any, source: str = "") -> None:
        """Add an op; its arguments are Refs, or plain values that become constants."""
        self._ops.append(OpCall(name, tuple(self._arg(arg).id for arg in args), source))

    def output(self, *refs: Ref) -> None:
        self._outputs.extend(ref.id for ref in refs)

    def program(self) -> Program:
        return Program(
            tuple(self._values),
            tuple(self._ops),
            tuple(self._inputs),
            tuple(self._outputs),
            self.name,
        )

    def _add(self, value: Value) -> Ref:
        self._values.append(value)
        return Ref(len(self._values) - 1)

    def _arg(self, arg: Any) -> Ref:
        return arg if isinstance(arg, Ref) else self._add(self._literal(arg))

    def _literal(self, arg: Any) -> Value:
        if isinstance(arg, list | tuple):
            return self._literal_list(list(arg))
        literal = as_literal(arg)
        if literal is None:
            raise GraphError(f"{arg!r} cannot be an argument of an op")
        return literal

    def _literal_list(self, items: list[Any]) -> Value:
        if any(isinstance(item, Ref) for item in items):
            return ValueListValue(tuple(self._arg(item).id for item in items))
        if items and all(type(item) is bool for item in items):
            return BoolListValue(tuple(items))
        if all(type(item) is int for item in items):
            return IntListValue(tuple(items))
        return DoubleListValue(tuple(float(item) for item in items))


assert HOST_DTYPES[BOOL.host] is BOOL, "host dtypes are distinct"
