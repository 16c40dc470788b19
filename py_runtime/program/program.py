"""The immutable program a reader gives to the engine: values by id, a chain of op calls.

Readers (graph JSON, and any other container) build a Program; `check_program` is the one place that
decides whether it is sound. A value's id is its index in `values`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from py_runtime.base.dtypes import DType
from py_runtime.base.errors import GraphError
from py_runtime.base.shapes import MAX_ELEMENTS, Dims, numel

MAX_RANK = 8
MAX_VALUES = 1_000_000
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True)
class TensorValue:
    """A tensor; an op computes it unless it is an input, a constant or state."""

    dtype: DType
    dims: Dims  # upper bounds
    name: str = ""
    constant: str | None = None  # name of the data it starts with
    state: bool = False  # lives across calls and starts as zeros (a KV cache)

    @property
    def persistent(self) -> bool:
        return self.constant is not None or self.state

    @property
    def gpu_bytes(self) -> int:
        return self.dtype.bytes_of(numel(self.dims))


@dataclass(frozen=True)
class SymIntValue:
    """A live scalar: set from an input or computed by an op at each call."""

    initial: int = 0
    name: str = ""


@dataclass(frozen=True)
class IntValue:
    """A fixed integer of any size; ops check what fits them."""

    value: int


@dataclass(frozen=True)
class DoubleValue:
    """A fixed number; kernels see it as f32."""

    value: float


@dataclass(frozen=True)
class BoolValue:
    """A fixed truth value; ops that ask for an int take it as 0 or 1."""

    value: bool


@dataclass(frozen=True)
class StringValue:
    """A fixed string, such as a rounding mode."""

    value: str


@dataclass(frozen=True)
class NullValue:
    """An optional argument that was not given."""


@dataclass(frozen=True)
class IntListValue:
    """A fixed list of ints; a list with SymInts in it is a ValueListValue."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class DoubleListValue:
    """A fixed list of numbers of any length."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class BoolListValue:
    """A fixed list of truth values of any length."""

    values: tuple[bool, ...]


@dataclass(frozen=True)
class ValueListValue:
    """A list of tensors, or of ints of which some are live."""

    ids: tuple[int, ...]


Value = (
    TensorValue
    | SymIntValue
    | IntValue
    | DoubleValue
    | BoolValue
    | StringValue
    | NullValue
    | IntListValue
    | DoubleListValue
    | BoolListValue
    | ValueListValue
)


def as_literal(given: object) -> Value | None:
    """Convert a plain Python number, text or None to a value; None for anything else."""
    match given:
        case None:
            return NullValue()
        case bool():  # before int, which it is a kind of
            return BoolValue(given)
        case int():
            return IntValue(given)
        case float():
            return DoubleValue(given)
        case str():
            return StringValue(given)
    return None


def as_constant(value: Value) -> TensorValue | None:
    """Return the value if it is a tensor that starts with stored data."""
    return value if isinstance(value, TensorValue) and value.constant is not None else None


@dataclass(frozen=True)
class OpCall:
    """One op of the chain, with its arguments by value id."""

    name: str
    args: tuple[int, ...]  # value ids; the output comes last
    source: str = ""  # module paths and torch lines it came from, one a line


@dataclass(frozen=True)
class ProgramInput:
    """A tensor or a SymInt that the caller passes at each call."""

    value: int
    dynamic_dims: frozenset[int] = frozenset()  # the other dims always have their maximum size


@dataclass(frozen=True)
class Program:
    """A chain of ops; each reads inputs, constants, state or results of earlier ops."""

    values: tuple[Value, ...]
    ops: tuple[OpCall, ...]
    inputs: tuple[ProgramInput, ...]
    outputs: tuple[int, ...]
    name: str = field(default="graph")

    def label(self, value_id: int) -> str:
        """Return the name of a value in messages and GPU labels."""
        name = getattr(self.values[value_id], "name", "")
        return f"value {value_id} '{name}'" if name else f"value {value_id}"

    def flatten(self, value_id: int) -> Iterator[int]:
        """Yield the id itself, or the ids in its value list."""
        value = self.values[value_id]
        if isinstance(value, ValueListValue):
            yield from value.ids
        else:
            yield value_id

    def constants(self) -> Iterator[tuple[int, TensorValue, str]]:
        """Yield (id, tensor, name of its data) of each constant; several may share one name."""
        for value_id, value in enumerate(self.values):
            if isinstance(value, TensorValue) and value.constant is not None:
                yield value_id, value, value.constant

    def reads(self, call: OpCall) -> Iterator[int]:
        for arg in call.args[:-1]:
            yield from self.flatten(arg)

    def writes(self, call: OpCall) -> Iterator[int]:
        yield from self.flatten(call.args[-1])


def check_program(program: Program) -> None:
    """Raise GraphError for the first fault; a program that passes can be built."""
    if len(program.values) > MAX_VALUES:
        raise GraphError(f"the graph has {len(program.values)} values; at most {MAX_VALUES}")
    for value_id, value in enumerate(program.values):
        _check_value(program, value_id, value)
    for index, call in enumerate(program.ops):
        if not call.args:
            raise GraphError(f"op {index} ({call.name}) has no arguments")
        for arg in call.args:
            _check_id(program, arg, f"op {index} ({call.name})")
    _check_ends(program)
    _check_order(program)


def _check_id(program: Program, value_id: int, where: str) -> None:
    if not 0 <= value_id < len(program.values):
        raise GraphError(
            f"{where} refers to value {value_id}; the graph has values 0 to "
            f"{len(program.values) - 1}"
        )


def _check_value(program: Program, value_id: int, value: Value) -> None:
    label = program.label(value_id)
    if isinstance(value, TensorValue):
        if len(value.dims) > MAX_RANK:
            raise GraphError(f"{label} has rank {len(value.dims)}; at most {MAX_RANK}")
        if any(size < 1 for size in value.dims):
            raise GraphError(f"{label} has dims {list(value.dims)}; every dim must be at least 1")
        if numel(value.dims) > MAX_ELEMENTS:
            raise GraphError(
                f"{label} has {numel(value.dims)} elements; at most {MAX_ELEMENTS} can be indexed"
            )
        if value.constant is not None and value.state:
            raise GraphError(f"{label} is both a constant and zero-initialised state; choose one")
    elif isinstance(value, SymIntValue):
        if not INT32_MIN <= value.initial <= INT32_MAX:
            raise GraphError(f"{label} starts at {value.initial}, which is not an int32")
    elif isinstance(value, ValueListValue):
        for item in value.ids:
            _check_id(program, item, label)
            if isinstance(program.values[item], ValueListValue):
                raise GraphError(f"{label} holds the value list {item}; lists do not nest")


def _check_ends(program: Program) -> None:
    for index, entry in enumerate(program.inputs):
        _check_id(program, entry.value, f"input {index}")
        value = program.values[entry.value]
        if isinstance(value, TensorValue):
            if value.persistent:
                raise GraphError(f"input {index} is {program.label(entry.value)}, a constant")
            if any(not 0 <= dim < len(value.dims) for dim in entry.dynamic_dims):
                raise GraphError(
                    f"input {index} says dims {sorted(entry.dynamic_dims)} are dynamic, but "
                    f"{program.label(entry.value)} has rank {len(value.dims)}"
                )
        elif not isinstance(value, SymIntValue):
            raise GraphError(
                f"input {index} is {program.label(entry.value)}, neither a tensor nor a SymInt"
            )
    if len({entry.value for entry in program.inputs}) != len(program.inputs):
        raise GraphError("a value is twice among the inputs")
    for index, value_id in enumerate(program.outputs):
        _check_id(program, value_id, f"output {index}")
        if not isinstance(program.values[value_id], TensorValue | SymIntValue):
            raise GraphError(
                f"output {index} is {program.label(value_id)}, neither a tensor nor a SymInt"
            )


def _check_order(program: Program) -> None:
    """Check that every live value is produced once and before its first use."""
    known = {entry.value for entry in program.inputs}
    for value_id, value in enumerate(program.values):
        is_live = isinstance(value, TensorValue | SymIntValue)
        if not is_live or (isinstance(value, TensorValue) and value.persistent):
            known.add(value_id)
    for index, call in enumerate(program.ops):
        where = f"op {index} ({call.name})"
        for value_id in program.reads(call):
            if value_id not in known:
                raise GraphError(
                    f"{where} uses {program.label(value_id)} before any op has produced it"
                )
        for value_id in program.writes(call):
            if isinstance(program.values[value_id], IntValue):
                continue  # a SymInt result the exporter folded
            if value_id in known:
                raise GraphError(f"{where} writes {program.label(value_id)}, which is not its own")
            known.add(value_id)
    for index, value_id in enumerate(program.outputs):
        if value_id not in known:
            raise GraphError(f"output {index} is {program.label(value_id)}, which no op produces")
