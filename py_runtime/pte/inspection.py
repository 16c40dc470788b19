"""The contents of a .pte file as plain data, even of one that cannot be loaded here."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from py_runtime.pte.container import (
    EValue,
    ExecutionPlan,
    HostTensor,
    KernelCall,
    MoveCall,
    Segment,
)
from py_runtime.pte.delegate import DelegateGraph
from py_runtime.pte.translate import PREPACK

COPY = "aten::copy_"  # into an input that the model changes


def describe_method(plan: ExecutionPlan, graphs: Mapping[Segment, DelegateGraph]) -> dict[str, Any]:
    """`graphs`: of the delegates that can be read."""
    own = [graphs[delegate.data] for delegate in plan.delegates if delegate.data in graphs]
    kernels = [call for call in plan.instructions if isinstance(call, KernelCall)]
    ops = Counter(call.name for graph in own for call in graph.chain if call.name != PREPACK)
    ops.update(call.name for call in kernels)
    stored = {
        (constant.key, constant.inside.offset): constant.nbytes
        for graph in own
        for constant in graph.constants
    }
    copied = {call.args[0] for call in kernels if call.name == COPY and call.args}
    calls = [call for call in plan.instructions if not isinstance(call, MoveCall)]
    live = {value_id for call in calls for value_id in call.args}
    return {
        "inputs": [_describe_value(plan.values[at], at in live) for at in plan.inputs],
        "outputs": [_describe_value(plan.values[at], at in live) for at in plan.outputs],
        "mutated_inputs": [at for at, value_id in enumerate(plan.inputs) if value_id in copied],
        "ops": dict(sorted(ops.items())),
        "constants": {"count": len(stored), "bytes": sum(stored.values())},
        "backends": sorted({delegate.backend for delegate in plan.delegates}),
    }


def _describe_value(value: EValue, is_live: bool) -> dict[str, Any]:
    if isinstance(value, HostTensor):
        dims = list(value.dims)
        return {"dtype": value.dtype.name, "dims": dims, "dynamic": value.dynamic}
    if is_live:
        return {"dtype": "int", "dims": [], "dynamic": False}
    return {"value": value if isinstance(value, bool | int | float | str) else None}
