"""Checks of a program's ops before it is built."""

from py_runtime.base.errors import GraphError
from py_runtime.base.short_texts import first_of
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import Program, SymIntValue

MAX_NAMES = 50  # that are listed


def check_ops(program: Program) -> None:
    """Check that every op is known, and that live values reach no op that cannot resize."""
    unknown = sorted({call.name for call in program.ops if call.name not in REGISTRY})
    if unknown:
        listed = ", ".join(first_of(unknown, MAX_NAMES))
        raise GraphError(f"the graph uses ops that this engine does not have: {listed}")
    changing = {entry.value for entry in program.inputs if entry.dynamic_dims}
    changing |= {at for at, v in enumerate(program.values) if isinstance(v, SymIntValue)}
    for index, call in enumerate(program.ops):
        if changing.isdisjoint(program.reads(call)):
            continue
        if not REGISTRY[call.name].resizes:
            raise GraphError(
                f"op {index} ({call.name}) cannot resize, but its arguments change from call to "
                "call; export the graph with fixed shapes"
            )
        changing.update(program.writes(call))
