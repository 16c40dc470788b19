"""A program while a pass rewrites it: the maker and the readers of each value, kept up to date."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from py_runtime.base.dtypes import F32
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import (
    BoolValue,
    DoubleValue,
    IntValue,
    NullValue,
    OpCall,
    Program,
    StringValue,
    TensorValue,
    Value,
    ValueListValue,
    as_constant,
    as_literal,
)

VIEWS = (
    "aten.view_copy.default",
    "aten.view.default",
    "aten._unsafe_view.default",
    "aten.reshape.default",
)


class CallAt(NamedTuple):
    """A call and its place among the program's own calls, which stays as calls come and go."""

    at: int
    call: OpCall


def sources_of(gone: Iterable[CallAt]) -> str:
    """Return where calls came from, a line each: what replaces them comes from there."""
    in_order = sorted(gone, key=lambda made: made.at)
    lines = [line for made in in_order for line in made.call.source.splitlines()]
    return "\n".join(dict.fromkeys(lines))


class Chain:
    """The calls of a program, which passes inspect and rewrite."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.values: list[Value] = list(program.values)
        self._calls: list[list[OpCall]] = [[call] for call in program.ops]  # at each place
        self._makers: dict[int, CallAt] = {}
        self._read_by: dict[int, list[CallAt]] = {}
        for at, call in enumerate(program.ops):
            self._enter(at, call)
        self._named: dict[str, list[int]] = {}  # the values of each constant
        for value_id, _, name in program.constants():
            self._named.setdefault(name, []).append(value_id)

    @staticmethod
    def _is_sound(call: OpCall) -> bool:
        """Return whether a call has its arguments; the builder refuses one that has not."""
        return len(call.args) == len(REGISTRY[call.name].args)

    def program(self) -> Program:
        ops = tuple(call for calls in self._calls for call in calls)
        return replace(self._program, values=tuple(self.values), ops=ops)

    # Looking -----------------------------------------------------------------------------------

    def calls_of(self, *names: str) -> list[CallAt]:
        """Return the calls of these ops in order; rewriting while iterating is safe."""
        return [
            CallAt(at, call)
            for at, calls in enumerate(self._calls)
            for call in calls
            if call.name in names and self._is_sound(call)
        ]

    def maker_for_one(self, value_id: int, *names: str) -> CallAt | None:
        """Return the call that makes a value, if it is one of these ops and has one reader."""
        made = self._makers.get(value_id)
        if made is None or made.call.name not in names or not self._is_sound(made.call):
            return None
        return made if len(self._calls_reading(value_id)) == 1 else None

    def only_call_reading(self, value_id: int) -> CallAt | None:
        """Return the only call that reads a value; None if there are several or it is an output."""
        reading = self._calls_reading(value_id)
        only = reading[0] if len(reading) == 1 else None
        return only if only is not None and self._is_sound(only.call) else None

    def calls_reading(self, value_id: int) -> list[CallAt] | None:
        """Return all calls that read a value; None if it is an output or a call is faulty."""
        reading = self._calls_reading(value_id)
        sound = [each for each in reading if each is not None and self._is_sound(each.call)]
        return sorted(sound, key=lambda each: each.at) if len(sound) == len(reading) else None

    def arg(self, call: OpCall, name: str) -> int:
        return call.args[REGISTRY[call.name].args.index(name)]

    def given(self, call: OpCall) -> dict[str, int]:
        """Return the arguments of a call by their names."""
        return dict(zip(REGISTRY[call.name].args, call.args, strict=True))

    def dims(self, value_id: int) -> tuple[int, ...]:
        value = self.values[value_id]
        return value.dims if isinstance(value, TensorValue) else ()

    def is_null(self, value_id: int) -> bool:
        return isinstance(self.values[value_id], NullValue)

    def number(self, value_id: int) -> float | None:
        value = self.values[value_id]
        return float(value.value) if isinstance(value, IntValue | DoubleValue | BoolValue) else None

    def constant(self, value_id: int) -> TensorValue | None:
        return as_constant(self.values[value_id])

    def is_read_once(self, constant: str) -> bool:
        """Return whether exactly one call reads a constant; several values may name it."""
        return sum(map(len, map(self._calls_reading, self._named[constant]))) == 1

    def is_state(self, value_id: int) -> bool:
        value = self.values[value_id]
        return isinstance(value, TensorValue) and value.state

    def is_by_tanh(self, gelu: OpCall) -> bool:
        """Return whether a gelu is the tanh approximation, as in fused kernels."""
        approximate = self.values[self.arg(gelu, "approximate")]
        return isinstance(approximate, StringValue) and approximate.value == "tanh"

    # Rewriting ---------------------------------------------------------------------------------

    def add(self, given: object) -> int:
        """Add a value: a number, a string, None, or a list of ids."""
        value = ValueListValue(tuple(given)) if isinstance(given, list) else as_literal(given)
        if value is None:
            raise TypeError(f"{given!r} cannot be a value")
        self.values.append(value)
        return len(self.values) - 1

    def add_like(self, value_id: int, dims: tuple[int, ...]) -> int:
        """Add a tensor like another but with other dims, to be made by a new call."""
        value = self.values[value_id]
        assert isinstance(value, TensorValue), "of a tensor"
        self.values.append(TensorValue(value.dtype, dims))
        return len(self.values) - 1

    def add_constant(self, name: str, dims: tuple[int, ...]) -> int:
        """Return the value of a constant in floats, which is added where none has its name."""
        known = self._named.setdefault(name, [])
        if not known:
            known.append(len(self.values))
            self.values.append(TensorValue(F32, dims, name, constant=name))
        return known[0]

    def call(self, op: str, source: str, /, **given: int | None) -> OpCall:
        """Return a call of an op by its arguments' names; what is left out is null."""
        args = REGISTRY[op].in_order(given)
        null = self.add(None) if None in args else 0
        return OpCall(op, tuple(null if arg is None else arg for arg in args), source)

    def replace(self, gone: Iterable[CallAt], at: int, calls: Sequence[OpCall]) -> None:
        """Remove calls and insert others at a place where everything they read has been made."""
        for was_at, call in gone:
            self._calls[was_at].remove(call)
            self._leave(was_at, call)
        self._calls[at].extend(calls)
        for call in calls:
            self._enter(at, call)

    def _calls_reading(self, value_id: int) -> list[CallAt | None]:
        kept = [None] * self._program.outputs.count(value_id)
        return [*self._read_by.get(value_id, []), *kept]

    def _enter(self, at: int, call: OpCall) -> None:
        for value_id in self._reads(call):
            self._read_by.setdefault(value_id, []).append(CallAt(at, call))
        for value_id in self._flat(call.args[-1]):
            self._makers[value_id] = CallAt(at, call)

    def _leave(self, at: int, call: OpCall) -> None:
        for value_id in self._reads(call):
            self._read_by[value_id].remove(CallAt(at, call))
        for value_id in self._flat(call.args[-1]):
            del self._makers[value_id]

    def _reads(self, call: OpCall) -> list[int]:
        return [value_id for arg in call.args[:-1] for value_id in self._flat(arg)]

    def _flat(self, value_id: int) -> tuple[int, ...]:
        value = self.values[value_id]
        return value.ids if isinstance(value, ValueListValue) else (value_id,)
