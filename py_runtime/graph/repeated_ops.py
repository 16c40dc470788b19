"""Repeated ops: what one op sets at a live state, ops built like it take over.

A decoder's layers are the same few ops over and over. An op's `live` is a function of the live dims
and SymInts that it reads, and of how the op was built; so within one resize the first op of a kind
is asked, and what it set is set for the others at a fraction of the cost.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from py_runtime.graph.builder import Builder
from py_runtime.live.launch import BufferCopy
from py_runtime.live.values import LiveInt, LiveTensor, Restorable
from py_runtime.ops.registry import HostReadOp
from py_runtime.program import SymIntValue, TensorValue, Value

Outcome = list[Any]


@dataclass(frozen=True)
class RepeatedOp:
    """One of several ops of a kind, with what its `live` depends on and what it sets."""

    kind: int
    reads: tuple[LiveTensor | LiveInt, ...]  # of its arguments, those that can change
    sets: tuple[Restorable, ...]

    def state(self) -> Hashable:
        return (self.kind, *[holder.value for holder in self.reads])

    def outcome(self) -> Outcome:
        """Return everything the op has set, changed or not: the other ops may hold other values."""
        return [holder.value for holder in self.sets]

    def repeat(self, outcome: Outcome) -> None:
        if outcome != self.outcome():
            for holder, value in zip(self.sets, outcome, strict=True):
                holder.change_to(value)


def find_repeated_ops(builder: Builder) -> list[RepeatedOp | None]:
    """Return the repeated op for each op, or None if no other op is like it."""
    steps: list[list[int]] = [[] for _ in builder.ops]
    for step, op_index in enumerate(builder.step_ops):
        steps[op_index].append(step)
    kinds: dict[Hashable, int] = {}
    found = [
        kinds.setdefault(_signature(builder, index, own), len(kinds))
        for index, own in enumerate(steps)
    ]
    sizes = Counter(found)
    changing = _changing(builder)
    return [
        _repeated_op(builder, index, kind, steps[index], changing)
        if sizes[kind] > 1 and not isinstance(builder.ops[index], HostReadOp)
        else None
        for index, kind in enumerate(found)
    ]


def _signature(builder: Builder, index: int, steps: list[int]) -> Hashable:
    """Return a key that is equal for calls with equal ops, fixed arguments, maxima and kernels."""
    program, call = builder.program, builder.program.ops[index]
    given = [list(program.flatten(arg)) for arg in call.args]
    ids = [value_id for items in given for value_id in items]
    own = [builder.steps[at] for at in steps]
    return (
        call.name,
        tuple(map(len, given)),
        tuple(map(ids.index, ids)),  # which of them are the same one
        tuple(_fixed_side(program.values[value_id]) for value_id in ids),
        tuple(None if isinstance(step, BufferCopy) else step.pipeline for step in own),
    )


def _fixed_side(value: Value) -> Hashable:
    """Return everything about a value that the live state does not change."""
    if isinstance(value, TensorValue):
        return value.dtype, value.dims
    return SymIntValue if isinstance(value, SymIntValue) else value


def _changing(builder: Builder) -> dict[int, LiveTensor | LiveInt]:
    """Return what a resize can change: inputs and the results of ops."""
    program = builder.program
    ids = {entry.value for entry in program.inputs}
    ids.update(value_id for call in program.ops for value_id in program.writes(call))
    live: dict[int, LiveTensor | LiveInt] = {**builder.tensors, **builder.symints}
    return {value_id: live[value_id] for value_id in ids if value_id in live}


def _repeated_op(
    builder: Builder,
    index: int,
    kind: int,
    steps: list[int],
    changing: dict[int, LiveTensor | LiveInt],
) -> RepeatedOp:
    program, call = builder.program, builder.program.ops[index]
    reads = dict.fromkeys(program.reads(call))
    given = [changing[value_id] for value_id in program.writes(call) if value_id in changing]
    own = [builder.steps[at] for at in steps]
    launches = [step if isinstance(step, BufferCopy) else step.launch for step in own]
    return RepeatedOp(
        kind,
        tuple(changing[value_id] for value_id in reads if value_id in changing),
        (*given, *launches),
    )
