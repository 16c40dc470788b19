"""The GPU buffers that a graph needs, planned before any exists."""

from collections.abc import Hashable
from dataclasses import dataclass

from py_runtime.gpu import UNIFORM_USAGE, BufferSpec, BufferUsage
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.graph.builder import Builder
from py_runtime.graph.carried_states import COPIES, copied_bytes
from py_runtime.graph.load_checks import check_ops
from py_runtime.graph.memory import MemoryReport
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.program import Program, TensorValue, as_constant

# What WebGPU guarantees everywhere; enough to build a program that no device is at hand for.
GUARANTEED_LIMITS = {
    "min_uniform_buffer_offset_alignment": 256,
    "max_compute_workgroups_per_dimension": 65535,
    "max_compute_invocations_per_workgroup": 128,
    "max_compute_workgroup_storage_size": 16 << 10,
}
UNIFORMS = ("uniforms",)
COPY = "copy of the states"  # with its number, the key of its buffer
# Kernels read their parameters from it; the sampling kernel moves live scalars on in it.
ARENA_USAGE = UNIFORM_USAGE | BufferUsage.STORAGE


@dataclass(frozen=True)
class BufferPlan:
    """Buffers to be created, and the values that live in each."""

    specs: dict[Hashable, BufferSpec]
    key_of: dict[Hashable, Hashable]  # of what kernels bind (a tensor: its id) → of a buffer
    report: MemoryReport


def plan_buffers(builder: Builder) -> BufferPlan:
    """Plan a buffer per input, constant and state, shared ones for the rest, and one uniform."""
    program = builder.program
    memory, unshared = builder.plan_memory()
    specs: dict[Hashable, BufferSpec] = {}
    key_of: dict[Hashable, Hashable] = {}
    purpose = dict.fromkeys(("constants", "state", "inputs", "intermediates"), 0)
    only_in_parts = builder.only_in_parts()
    for ids, joined in builder.joins.items():
        key_of[joined] = ("joined", ids)
        specs["joined", ids] = BufferSpec(joined.label, joined.nbytes)
        purpose["constants"] += joined.nbytes
    for place, weight_slice in builder.slices.items():
        key_of[weight_slice] = ("slice", place)
        specs["slice", place] = BufferSpec(weight_slice.label, weight_slice.nbytes)
        purpose["constants"] += weight_slice.nbytes
    for value_id, tensor in builder.tensors.items():
        value = program.values[value_id]
        assert isinstance(value, TensorValue)
        if builder.root(value_id) != value_id or not builder.owns_buffer(value_id):
            continue
        if value_id in only_in_parts:
            continue
        # Constants of one name are one buffer, but for those that an op writes in place.
        shared_name = None if builder.is_mutated(value_id) else value.constant
        key = ("own", value_id) if shared_name is None else ("constant", shared_name)
        key_of[value_id] = key
        if key not in specs:
            specs[key] = BufferSpec(tensor.label, tensor.max_bytes)
            kind = "inputs" if as_constant(value) is None else "constants"
            purpose["state" if value.state else kind] += tensor.max_bytes
    copied = copied_bytes(program)
    for number in range(COPIES if copied else 0):
        specs[COPY, number] = BufferSpec(f"{program.name} {COPY} {number}", copied)
        purpose["state"] += copied
    for slot, nbytes in enumerate(memory.slot_bytes):
        specs["slot", slot] = BufferSpec(f"{program.name} shared {slot}", nbytes)
        purpose["intermediates"] += nbytes
    key_of.update({key: ("slot", slot) for key, slot in memory.slot_of.items()})
    specs[UNIFORMS] = BufferSpec(f"{program.name} uniforms", builder.arena.size, ARENA_USAGE)
    report = MemoryReport(**purpose, unshared=unshared, uniforms=builder.arena.size)
    return BufferPlan(specs, key_of, report)


def measure(program: Program) -> BufferPlan:
    """Return the buffers a program would take with the kernels that run everywhere."""
    check_ops(program)
    builder = Builder(run_passes(program, PORTABLE, DEFAULT_PASSES), GUARANTEED_LIMITS)
    builder.build_ops()
    return plan_buffers(builder)
