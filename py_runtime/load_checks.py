"""What must hold before a program is built: known ops that can resize, constants that fit."""

from collections.abc import Mapping

import numpy as np

from py_runtime.errors import GraphError
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import Program, SymIntValue, TensorValue


def check_ops(program: Program) -> None:
    """Every op is known, and none that cannot resize is reached by anything that changes."""
    unknown = sorted({call.name for call in program.ops if call.name not in REGISTRY})
    if unknown:
        raise GraphError(f"the graph uses ops that this engine does not have: {', '.join(unknown)}")
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


def check_constants(program: Program, constants: Mapping[str, np.ndarray]) -> None:
    for value_id, value in enumerate(program.values):
        if not isinstance(value, TensorValue) or value.constant is None:
            continue
        label = program.label(value_id)
        if value.constant not in constants:
            raise GraphError(f"{label} needs the constant '{value.constant}', which is missing")
        data = constants[value.constant]
        if tuple(data.shape) != value.dims or data.dtype not in (value.dtype.host, value.dtype.gpu):
            raise GraphError(
                f"{label} is {value.dtype.name} {list(value.dims)}, but its constant "
                f"'{value.constant}' is {data.dtype} {list(data.shape)}"
            )
