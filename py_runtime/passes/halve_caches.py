"""A pass that stores key and value caches as f16 where the adapter supports it.

That halves their memory and what attention reads. A cache that anything but attention reads stays
as it is, and so does its partner.
"""

from dataclasses import replace

from py_runtime.base.dtypes import F16, F32
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import OpCall, Program, TensorValue, op_names

ATTENTION = (
    *op_names.FILLING,
    *op_names.ATTEND,
    op_names.QKV_ROTARY_CACHE,
    "inpage.attend_linear.default",
)
AT_ONCE = 4  # halves that kernels read at a time


def run(program: Program, target: KernelTarget) -> Program:
    """Turn f32 caches of keys and values into f16 if the target says so."""
    if not target.f16_kv:
        return program
    halved = _caches(program)
    values = tuple(
        replace(value, dtype=F16)
        if isinstance(value, TensorValue) and value_id in halved
        else value
        for value_id, value in enumerate(program.values)
    )
    return replace(program, values=values)


def _caches(program: Program) -> set[int]:
    found = {value_id for value_id, value in enumerate(program.values) if _is_cache(value)}
    found -= set(program.outputs)
    pairs = []
    for call in program.ops:
        pair = _pair(call)
        pairs.append(pair)
        found -= {*program.reads(call), *program.writes(call)} - {*pair}
    while apart := [pair for pair in pairs if len(found & {*pair}) == 1]:
        found -= {value_id for pair in apart for value_id in pair}
    return found


def _is_cache(value: object) -> bool:
    return (
        isinstance(value, TensorValue)
        and value.state
        and value.dtype is F32
        and len(value.dims) >= 3
        and value.dims[-1] % AT_ONCE == 0
    )


def _pair(call: OpCall) -> tuple[int, ...]:
    """Return the caches of a call, k and v."""
    names = REGISTRY[call.name].args
    if call.name not in ATTENTION or len(names) != len(call.args):
        return ()
    return tuple(call.args[names.index(name)] for name in ("k_cache", "v_cache"))
