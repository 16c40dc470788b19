"""Probes: reading any tensor of a graph while it runs.

Intermediates share buffers, so after a call most of them are gone. A probed run goes through the
plan in segments and reads each probed tensor right after the op that makes it: it costs one pass
and the reads, and what ops write in place is written once, as in any other run.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from py_runtime.base.errors import GraphError
from py_runtime.graph import Graph
from py_runtime.graph.graph import Change
from py_runtime.program import Program, TensorValue


async def run_probed(
    graph: Graph,
    inputs: Sequence[Any],
    probes: Iterable[str | int],
    change: Change | None = None,
) -> dict[str | int, np.ndarray]:
    """Return the probed tensors at their live shapes, by the names or ids given, in chain order.

    `change` may give other numbers for a tensor, with which the chain goes on. An input, a constant
    or a state is read as it is before the first op.
    """
    program = graph.program
    named = tensors_by_name(program)
    ops_before = {entry.value: 0 for entry in program.inputs}
    for count, call in enumerate(program.ops, start=1):
        ops_before.update(dict.fromkeys(program.writes(call), count))
    stops: list[tuple[int, int, str | int]] = []  # ops that run before, value, how it was called
    for probe in dict.fromkeys(probes):
        value_id = _find(program, named, probe) if isinstance(probe, str) else probe
        graph.live_dims(value_id)  # refuses what is not a tensor
        value = program.values[value_id]
        if isinstance(value, TensorValue) and value.persistent:
            ops_before[value_id] = 0
        if value_id not in ops_before:
            raise GraphError(f"{program.label(value_id)} is not made by an op, so it has no data")
        stops.append((ops_before[value_id], value_id, probe))
    stops.sort(key=lambda stop: stop[:2])
    arrays = await graph.run_with_probes(inputs, [stop[:2] for stop in stops], change)
    return {probe: array for (_, _, probe), array in zip(stops, arrays, strict=True)}


def tensors_by_name(program: Program) -> dict[str, list[int]]:
    """Return the value ids of each name; a name may stand for several values."""
    named: dict[str, list[int]] = {}
    for value_id, value in enumerate(program.values):
        if isinstance(value, TensorValue) and value.name:
            named.setdefault(value.name, []).append(value_id)
    return named


def _find(program: Program, named: dict[str, list[int]], name: str) -> int:
    found = named.get(name, [])
    if len(found) != 1:
        ids = ", ".join(map(str, found))
        fault = f"several ({ids}); give the id of one" if found else "none"
        raise GraphError(f"of the tensors of graph '{program.name}', '{name}' names {fault}")
    return found[0]
