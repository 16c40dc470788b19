"""A pass that stores key and value caches in the target's type: floats, halves, or blocks.

Halves take half the memory and half of what attention reads, blocks of 8 or 4 bits a quarter or an
eighth and a little more. A cache that anything but attention reads stays as it is, and so does its
partner.
"""

from dataclasses import replace

from py_runtime.base.dtypes import CACHE_DTYPES, F32, DType
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import OpCall, Program, TensorValue, op_names

ATTENTION = (
    *op_names.FILLING,
    *op_names.ATTEND,
    op_names.QKV_ROTARY_CACHE,
    "inpage.attend_linear.default",
)
AT_ONCE = 4  # values that kernels read at a time


def run(program: Program, target: KernelTarget) -> Program:
    """Turn f32 caches of keys and values into the type that the target says."""
    dtype = CACHE_DTYPES[target.kv]
    return program if dtype is F32 else typed(program, dtype)


def typed(program: Program, dtype: DType) -> Program:
    """Return the program with all caches of a type that can be."""
    caches = _caches(program, dtype)
    values = tuple(
        replace(value, dtype=dtype)
        if isinstance(value, TensorValue) and value_id in caches
        else value
        for value_id, value in enumerate(program.values)
    )
    return replace(program, values=values)


def caches_of(program: Program) -> set[int]:
    """Return the values that attention takes for caches."""
    return {value_id for call in program.ops for value_id in _pair(call)}


def _caches(program: Program, dtype: DType) -> set[int]:
    values = enumerate(program.values)
    found = {value_id for value_id, value in values if _can_be(value, dtype)}
    found -= set(program.outputs)
    pairs = []
    for call in program.ops:
        pair = _pair(call)
        pairs.append(pair)
        found -= {*program.reads(call), *program.writes(call)} - {*pair}
    while apart := [pair for pair in pairs if len(found & {*pair}) == 1]:
        found -= {value_id for pair in apart for value_id in pair}
    return found


def _can_be(value: object, dtype: DType) -> bool:
    """Return whether a value is a cache whose rows the type can hold."""
    return (
        isinstance(value, TensorValue)
        and value.state
        and value.dtype is F32
        and len(value.dims) >= 3
        and holds_rows(dtype, *value.dims[-2:])
    )


def holds_rows(dtype: DType, heads: int, width: int) -> bool:
    """Return whether a type can hold rows of so many heads."""
    return width % AT_ONCE == 0 and heads * width % dtype.block == 0


def _pair(call: OpCall) -> tuple[int, ...]:
    """Return the caches of a call, k and v."""
    names = REGISTRY[call.name].args
    if call.name not in ATTENTION or len(names) != len(call.args):
        return ()
    return tuple(call.args[names.index(name)] for name in ("k_cache", "v_cache"))
