"""The memory that a program will take, known before it is loaded."""

from collections.abc import Iterator

from py_runtime.base.dtypes import F32, DType
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.graph.carried_states import COPIES, copied_bytes
from py_runtime.ops.registry import REGISTRY
from py_runtime.passes import ring_caches, type_caches
from py_runtime.program import Program, TensorValue, op_names


def held_bytes(program: Program, base: Program | None = None) -> int:
    """Return the bytes that stay on the GPU: weights, caches, states and their copies.

    What a program has from its base is not counted again.
    """
    given = set() if base is None else {value.name for value in _held(base)}
    own = sum(value.gpu_bytes for value in _held(program) if value.name not in given)
    return own + COPIES * copied_bytes(program)


def _held(program: Program) -> list[TensorValue]:
    """Return constants, each once, and states as they are where rings have shrunk some."""
    constants = {name: value for _, value, name in program.constants()}
    ringed = ring_caches.run(program, PORTABLE).values
    states = [value for value in ringed if isinstance(value, TensorValue) and value.state]
    return [*constants.values(), *states]


def cache_bytes(program: Program, dtype: DType = F32) -> int:
    """Return the bytes of the caches of keys and values, where those are of a type that can be."""
    return sum(_bytes_of_caches(program, dtype))


def largest_cache(program: Program, dtype: DType) -> int:
    """Return the bytes of the largest of them."""
    return max(_bytes_of_caches(program, dtype), default=0)


def _bytes_of_caches(program: Program, dtype: DType) -> list[int]:
    typed = type_caches.typed(ring_caches.run(program, PORTABLE), dtype)
    values = [typed.values[value_id] for value_id in type_caches.caches_of(typed)]
    return [value.gpu_bytes for value in values if isinstance(value, TensorValue) and value.state]


def needed_bytes(program: Program) -> int:
    """Return the smallest buffer size that the device must allow.

    Larger weights are cut by rows. A table of f32 is not, since only a copy reads it, nor are
    experts, whose rows are looked up.
    """
    largest = max(value.gpu_bytes for _, value, _ in program.constants())
    tables = [
        program.values[call.args[0]]
        for call in program.ops
        if call.name == "aten.embedding.default"
    ]
    uncut = [table.gpu_bytes for table in tables if isinstance(table, TensorValue)]
    return max([min(largest, PORTABLE.binding_bytes), *uncut, *_bytes_of_experts(program)])


def _bytes_of_experts(program: Program) -> Iterator[int]:
    """Yield the bytes of each layer's experts: gate and up in one buffer, down in another."""
    places = [REGISTRY[op_names.EXPERTS].args.index(name) for name in ("gate", "up", "down")]
    for call in program.ops:
        if call.name == op_names.EXPERTS:
            held = [program.values[call.args[place]] for place in places]
            gate, up, down = (each.gpu_bytes for each in held if isinstance(each, TensorValue))
            yield max(gate + up, down)
