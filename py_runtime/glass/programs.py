"""Parts and variants of a decoder's program, which keep its value ids."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from py_runtime.program import (
    NullValue,
    OpCall,
    Program,
    ProgramInput,
    TensorValue,
    Value,
)


def pruned(program: Program) -> Program:
    """Return the program without values that nothing refers to, so that they take no memory."""
    used = {entry.value for entry in program.inputs} | set(program.outputs)
    for call in program.ops:
        for arg in call.args:
            used |= {arg, *program.flatten(arg)}
    values = tuple(v if at in used else NullValue() for at, v in enumerate(program.values))
    return replace(program, values=values)


def part(
    program: Program,
    name: str,
    rows: int,
    inputs: Iterable[int],
    calls: Iterable[OpCall],
    output: int,
) -> Program:
    """Return some calls as a program of their own, whose inputs and results are [rows, columns].

    The inputs are tensors of the program that these calls read.
    """
    calls, inputs = tuple(calls), tuple(inputs)
    made = [*inputs, *(v for call in calls for v in program.writes(call))]
    values: list[Value] = list(program.values)
    for value_id in made:
        value = values[value_id]
        assert isinstance(value, TensorValue), "of rows"
        values[value_id] = replace(value, dims=(rows, value.dims[-1]))
    given = tuple(ProgramInput(value_id, frozenset({0})) for value_id in inputs)
    return pruned(Program(tuple(values), calls, given, (output,), f"{program.name} {name}"))


def renamed(call: OpCall, names: Mapping[int, int]) -> OpCall:
    """Return the call with other values in place of some."""
    return replace(call, args=tuple(names.get(arg, arg) for arg in call.args))
