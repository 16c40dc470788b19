"""Places in a program where values are changed by numbers that the host writes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from py_runtime.base.dtypes import F32, I32
from py_runtime.base.errors import InputError
from py_runtime.base.shapes import numel
from py_runtime.glass.anatomy import Anatomy
from py_runtime.gpu import Write
from py_runtime.graph import Graph
from py_runtime.program import OpCall, Program, TensorValue, Value, ValueListValue

EDIT = "inpage.edit.default"
FOREVER = 2**31 - 1
NOWHERE = (0, 0)


@dataclass(frozen=True)
class Wanted:
    """A slot to be made: of a value [1, S, ...], with a row for all positions or one for each."""

    value: int
    rows: int = 1


@dataclass(frozen=True)
class Slot:
    """A slot of a graph: the states that hold its numbers."""

    value: int
    rows: int
    width: int
    gain: int
    bias: int
    span: int

    def writes(
        self, graph: Graph, gain: np.ndarray, bias: np.ndarray, span: tuple[int, int]
    ) -> list[Write]:
        """Return what changes rows of the span to gain * x + bias."""
        dims = (self.rows, self.width)
        numbers = [
            np.ascontiguousarray(np.broadcast_to(each, dims), np.float32)
            for each in (gain - 1, bias)
        ]
        return [
            Write(graph.buffer(self.gain), numbers[0]),
            Write(graph.buffer(self.bias), numbers[1]),
            self.reach(graph, span),
        ]

    def reach(self, graph: Graph, span: tuple[int, int]) -> Write:
        """Return what changes the positions alone."""
        return Write(graph.buffer(self.span), np.array(span, np.int32))


def with_slots(
    program: Program, anatomy: Anatomy, wanted: Sequence[Wanted], prefix: str
) -> tuple[Program, list[Slot]]:
    """Return the program with a slot for each that is wanted; values keep their ids.

    Several of one value follow each other. They change nothing until numbers are written.
    """
    start = anatomy.start
    if wanted and start is None:
        raise InputError(f"{program.name} has no position that its layers read: it has no edits")
    values: list[Value] = list(program.values)
    ops = list(program.ops)
    slots: list[Slot] = []

    def add(value: Value) -> int:
        values.append(value)
        return len(values) - 1

    for number, each in enumerate(wanted):
        value = values[each.value]
        assert isinstance(value, TensorValue), "of a value that an op makes"
        width = numel(value.dims[2:])
        name = f"{prefix} {number}"
        dims = (each.rows, width)
        gain, bias = (add(TensorValue(F32, dims, f"{name} {n}", None, True)) for n in "gb")
        span = add(TensorValue(I32, (2,), f"{name} span", None, True))
        before = add(replace(value, name=""))
        at = next(i for i, call in enumerate(ops) if _writes(values, call, each.value))
        out = ops[at].args[-1]
        listed = values[out]
        if isinstance(listed, ValueListValue):
            ids = tuple(before if v == each.value else v for v in listed.ids)
            out = add(ValueListValue(ids))
        else:
            out = before
        ops[at] = replace(ops[at], args=(*ops[at].args[:-1], out))
        assert start is not None
        args = (before, gain, bias, span, start, each.value)
        ops.insert(max(at, _made_at(values, ops, start)) + 1, OpCall(EDIT, args, ops[at].source))
        slots.append(Slot(each.value, each.rows, width, gain, bias, span))
    return replace(program, values=tuple(values), ops=tuple(ops)), slots


def _writes(values: Sequence[Value], call: OpCall, value_id: int) -> bool:
    out = values[call.args[-1]]
    return value_id in (out.ids if isinstance(out, ValueListValue) else (call.args[-1],))


def _made_at(values: Sequence[Value], ops: Sequence[OpCall], value_id: int) -> int:
    return next((at for at, call in enumerate(ops) if _writes(values, call, value_id)), -1)
