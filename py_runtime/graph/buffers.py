"""The GPU buffers that a graph needs, planned before any exists."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from py_runtime.gpu import UNIFORM_USAGE, Binding, BufferSpec, BufferUsage
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.graph.builder import Builder
from py_runtime.graph.carried_states import COPIES, carried_states, copied_bytes
from py_runtime.graph.load_checks import check_ops
from py_runtime.graph.memory import MemoryReport
from py_runtime.live.launch import BufferCopy
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

# What is in a buffer and how it lies there; equal in two graphs of one model.
Content = tuple[Hashable, ...]


@dataclass(frozen=True)
class BufferPlan:
    """Buffers to be created, those that another graph lends, and the values that live in each."""

    specs: dict[Hashable, BufferSpec]
    key_of: dict[Hashable, Hashable]  # of what kernels bind (a tensor: its id) → of a buffer
    report: MemoryReport  # of what is to be created
    lent: dict[Hashable, Binding]
    content_of: dict[Hashable, Content]  # of constants and states, by the buffer's key


def plan_buffers(builder: Builder, lendable: Mapping[Content, Binding] | None = None) -> BufferPlan:
    """Plan a buffer per input, constant and state, shared ones for the rest, and one uniform.

    What is `lendable` needs none.
    """
    program = builder.program
    memory, unshared = builder.plan_memory()
    specs: dict[Hashable, BufferSpec] = {}
    key_of: dict[Hashable, Hashable] = {}
    lent: dict[Hashable, Binding] = {}
    content_of: dict[Hashable, Content] = {}
    purpose = dict.fromkeys(("constants", "state", "inputs", "intermediates"), 0)
    only_in_parts = builder.only_in_parts()
    whole_only = _copied(builder) | set(program.outputs)
    state_names = Counter(v.name for v in program.values if isinstance(v, TensorValue) and v.state)

    def plan(
        key: Hashable, spec: BufferSpec, kind: str, content: Content | None, is_whole: bool
    ) -> None:
        if key in specs or key in lent:
            return
        if content is not None:
            content_of[key] = content
            found = (lendable or {}).get(content)
            if found is not None and not (is_whole and found.offset):
                lent[key] = found
                return
        specs[key] = spec
        purpose[kind] += spec.size

    for ids, joined in builder.joins.items():
        key_of[joined] = ("joined", ids)
        content: Content = ("joined", *(_constant_name(program, part.id) for part in joined.parts))
        plan(("joined", ids), BufferSpec(joined.label, joined.nbytes), "constants", content, True)
    for place, weight_slice in builder.slices.items():
        content = key_of[weight_slice] = ("slice", place)
        spec = BufferSpec(weight_slice.label, weight_slice.nbytes)
        plan(content, spec, "constants", content, True)
    for value_id, tensor in builder.tensors.items():
        value = program.values[value_id]
        assert isinstance(value, TensorValue)
        if builder.root(value_id) != value_id or not builder.owns_buffer(value_id):
            continue
        if value_id in only_in_parts:
            continue
        # Constants of one name are one buffer, but for those that an op writes in place.
        shared_name = None if builder.is_mutated(value_id) else value.constant
        key: Content = ("own", value_id) if shared_name is None else ("constant", shared_name)
        key_of[value_id] = key
        own: Content | None = None if shared_name is None else key
        kind = "inputs" if as_constant(value) is None else "constants"
        if value.state:
            called = value.name if state_names[value.name] == 1 else value_id
            own, kind = ("state", called, value.dims, value.dtype), "state"
        spec = BufferSpec(tensor.label, tensor.max_bytes)
        plan(key, spec, kind, own, value.state or value_id in whole_only)
    copied = copied_bytes(program)
    carried = [
        getattr(program.values[value_id], "name", "") for value_id in carried_states(program)
    ]
    for number in range(COPIES if copied else 0):
        spec = BufferSpec(f"{program.name} {COPY} {number}", copied)
        plan((COPY, number), spec, "state", (COPY, number, *carried), True)
    for slot, nbytes in enumerate(memory.slot_bytes):
        specs["slot", slot] = BufferSpec(f"{program.name} shared {slot}", nbytes)
        purpose["intermediates"] += nbytes
    key_of.update({key: ("slot", slot) for key, slot in memory.slot_of.items()})
    specs[UNIFORMS] = BufferSpec(f"{program.name} uniforms", builder.arena.size, ARENA_USAGE)
    report = MemoryReport(**purpose, unshared=unshared, uniforms=builder.arena.size)
    return BufferPlan(specs, key_of, report, lent, content_of)


def _constant_name(program: Program, value_id: int) -> str | None:
    value = as_constant(program.values[value_id])
    return None if value is None else value.constant


def _copied(builder: Builder) -> set[int]:
    """Return the tensors that steps copy: from the begin of their buffer."""
    copies = [step for step in builder.steps if isinstance(step, BufferCopy)]
    ends = (end.id for step in copies for end in (step.source, step.destination))
    return {builder.root(value_id) for value_id in ends}


def measure(program: Program) -> BufferPlan:
    """Return the buffers a program would take with the kernels that run everywhere."""
    check_ops(program)
    builder = Builder(run_passes(program, PORTABLE, DEFAULT_PASSES), GUARANTEED_LIMITS)
    builder.build_ops()
    return plan_buffers(builder)
