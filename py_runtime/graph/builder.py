"""Builds a graph's static side: live values, launches, aliases, and the memory they need."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from py_runtime.base.errors import GraphError, InputError
from py_runtime.gpu import PipelineSpec
from py_runtime.gpu.kernel_sources import PARAMS, KernelSource, kernel_source
from py_runtime.gpu.kernel_target import PORTABLE, KernelTarget
from py_runtime.graph.memory import Interval, MemoryPlan, share
from py_runtime.live.build_context import Caller
from py_runtime.live.launch import (
    Bindable,
    BufferCopy,
    Joined,
    Launch,
    Scratch,
    WeightSlice,
)
from py_runtime.live.uniforms import UniformArena, params_layout
from py_runtime.live.values import Journal, LiveInt, LiveTensor
from py_runtime.ops.registry import REGISTRY, HostReadOp, Op
from py_runtime.program import INT32_MAX, INT32_MIN, Program, SymIntValue, TensorValue, as_constant


@dataclass(frozen=True)
class LaunchSpec:
    """The description from which the device creates one launch."""

    launch: Launch
    pipeline: PipelineSpec
    bindings: tuple[tuple[str, Bindable | None], ...]  # None stands for the launch's parameters


@dataclass(frozen=True)
class HostSource:
    """A SymInt read from an input on the host, before anything is resized."""

    index: int  # among the program's inputs, found once
    op: HostReadOp


@dataclass
class Builder:
    """The static side of a graph, which ops add to; it needs a device's limits, but no device."""

    program: Program
    limits: dict[str, int]
    target: KernelTarget = PORTABLE
    arena: UniformArena = field(init=False)
    journal: Journal = field(init=False)
    ops: list[Op] = field(default_factory=list)
    steps: list[LaunchSpec | BufferCopy] = field(default_factory=list)
    step_ops: list[int] = field(default_factory=list)  # the op each step belongs to
    scratches: list[Scratch] = field(default_factory=list)
    joins: dict[tuple[int, ...], Joined] = field(default_factory=dict)  # by the parts' ids
    slices: dict[tuple[str, int, int], WeightSlice] = field(default_factory=dict)  # by name, bytes
    host_sources: list[HostSource] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arena = UniformArena(self.limits["min_uniform_buffer_offset_alignment"])
        self.journal = Journal(len(self.program.ops))
        self.tensors: dict[int, LiveTensor] = {}
        self.symints: dict[int, LiveInt] = {}
        self._bound_fixed_ints: list[LiveInt] = []  # never set, so uploaded once, at load
        self._roots: dict[int, int] = {}  # alias → the tensor whose bytes it shares
        self._input_index = {entry.value: at for at, entry in enumerate(self.program.inputs)}
        for value_id, value in enumerate(self.program.values):
            label = self.program.label(value_id)
            if isinstance(value, TensorValue):
                tensor = LiveTensor(value_id, label, value.dtype, value.dims)
                tensor.journal = self.journal
                self.tensors[value_id] = tensor
            elif isinstance(value, SymIntValue):
                symint = LiveInt(value_id, label, value.initial, is_symint=True)
                symint.slot(self.arena)
                symint.journal = self.journal
                self.symints[value_id] = symint
        self._mutated = self._find_mutated()

    def build_ops(self) -> None:
        for _ in self.build_each_op():
            pass

    def build_each_op(self) -> Iterator[None]:
        """Build op after op; whoever asks for the next may do something else in between."""
        for index, call in enumerate(self.program.ops):
            op = REGISTRY[call.name].op(self, REGISTRY[call.name], call, index)
            self.ops.append(op)
            for value_id in dict.fromkeys(self.program.reads(call)):
                live = self.tensors.get(value_id) or self.symints.get(value_id)
                if live is not None:
                    live.read_by.append(index)
            try:
                op.build()
            except InputError as error:  # shape helpers know nothing of load and call
                raise GraphError(f"{op.where}: {error}") from error
            yield
        self.arena.seal()
        for fixed in self._bound_fixed_ints:
            fixed.upload()

    # What ops ask for (see Op) -----------------------------------------------------------------

    def tensor(self, value_id: int) -> LiveTensor:
        return self.tensors[value_id]

    def symint(self, value_id: int) -> LiveInt:
        return self.symints[value_id]

    def fixed_int(self, value_id: int, value: int) -> LiveInt:
        return LiveInt(value_id, self.program.label(value_id), value, is_symint=False)

    def read_from_host(self, op: HostReadOp, tensor: LiveTensor) -> None:
        index = self._input_index.get(tensor.id)
        if index is None:
            raise GraphError(f"{op.where} reads {tensor.label} on the host; only an input can be")
        self.host_sources.append(HostSource(index, op))

    def launch(
        self,
        op: Caller,
        kernel: str | KernelSource,
        plugs: Mapping[str, str],
        bind: Mapping[str, Bindable],
        constants: Mapping[str, float],
    ) -> Launch:
        joined = kernel_source(kernel, plugs) if isinstance(kernel, str) else kernel
        if set(joined.bindings) != {*bind, PARAMS}:
            raise GraphError(
                f"{op.where}: shader '{joined.label}' binds {sorted(joined.bindings)}, the op "
                f"gives {sorted([*bind, PARAMS])}"
            )
        for resource in bind.values():
            if isinstance(resource, LiveInt):
                resource.slot(self.arena)
                if not resource.is_symint:
                    if not INT32_MIN <= resource.value <= INT32_MAX:
                        raise GraphError(
                            f"{op.where}: {resource.label} is {resource.value}, which does not fit "
                            "the GPU's int32"
                        )
                    self._bound_fixed_ints.append(resource)
        overrides = tuple(sorted(constants.items()))
        self._check_workgroup(op, joined, overrides)
        launch = Launch(
            f"{op.where} {joined.label}",
            params_layout(joined),
            self.arena,
            self.limits["max_compute_workgroups_per_dimension"],
            joined.workgroup(overrides),
        )
        launch.journal = self.journal
        pipeline = PipelineSpec(joined.label, joined.source, overrides, kernel=joined)
        bindings = tuple((name, bind.get(name)) for name in joined.bindings)
        self._add_step(op, LaunchSpec(launch, pipeline, bindings))
        return launch

    def _check_workgroup(
        self, op: Caller, kernel: KernelSource, overrides: tuple[tuple[str, float], ...]
    ) -> None:
        takes = {
            "max_compute_invocations_per_workgroup": kernel.workgroup(overrides),
            "max_compute_workgroup_storage_size": kernel.workgroup_bytes(overrides),
        }
        for limit, taken in takes.items():
            if taken > self.limits[limit]:
                raise GraphError(
                    f"{op.where}: shader '{kernel.label}' takes {taken} of {limit}; this device "
                    f"allows {self.limits[limit]}"
                )

    def copy(self, op: Caller, source: LiveTensor, destination: LiveTensor) -> BufferCopy:
        step = BufferCopy(f"{op.where} copy", source, destination)
        step.journal = self.journal
        self._add_step(op, step)
        return step

    def scratch(self, op: Caller, label: str, nbytes: int) -> Scratch:
        scratch = Scratch(f"{op.where} {label}", nbytes, op.index)
        self.scratches.append(scratch)
        return scratch

    def join(self, op: Caller, parts: Sequence[LiveTensor]) -> LiveTensor | Joined:
        """Return one buffer for constants that follow one another without gaps."""
        if len(parts) == 1:
            return parts[0]
        for part in parts:
            is_constant = as_constant(self.program.values[part.id]) is not None
            if not is_constant or part.id in self._mutated or part.max_bytes % 4:
                raise GraphError(
                    f"{op.where}: {part.label} cannot stand in one buffer with others; only "
                    "constants of whole 32-bit words can"
                )
        label = f"{op.where} {parts[0].label} and {len(parts) - 1} more"
        return self.joins.setdefault(tuple(part.id for part in parts), Joined(label, tuple(parts)))

    def cut(self, op: Caller, tensor: LiveTensor, rows: int) -> list[WeightSlice]:
        """Split a constant that is too large for one binding into buffers of `rows` rows each."""
        value = as_constant(self.program.values[tensor.id])
        name = value.constant if value is not None else None
        count = tensor.max_dims[0]
        row_bytes = tensor.max_bytes // count
        if name is None or tensor.id in self._mutated or rows * row_bytes % 4:
            raise GraphError(f"{op.where}: {tensor.label} cannot be cut into rows")
        found = []
        for first in range(0, count, rows):
            start, nbytes = first * row_bytes, min(rows, count - first) * row_bytes
            label = f"{tensor.label} from row {first} on"
            weight_slice = WeightSlice(label, tensor, start, nbytes)
            found.append(self.slices.setdefault((name, start, nbytes), weight_slice))
        return found

    def try_alias(self, source: LiveTensor, alias: LiveTensor) -> bool:
        root = self.root(source.id)
        if root in self._mutated or alias.max_bytes > self.tensors[root].max_bytes:
            return False
        self._roots[alias.id] = root
        return True

    def alias_mutated(self, source: LiveTensor, alias: LiveTensor) -> None:
        """Let the result of an op share the tensor that the op has just written in place."""
        self._roots[alias.id] = self.root(source.id)

    def root(self, value_id: int) -> int:
        return self._roots.get(value_id, value_id)

    # Memory ------------------------------------------------------------------------------------

    def is_mutated(self, value_id: int) -> bool:
        return value_id in self._mutated

    def owns_buffer(self, value_id: int) -> bool:
        """Return whether a value keeps a buffer of its own: inputs, constants and state do."""
        value = self.program.values[value_id]
        assert isinstance(value, TensorValue)
        return value.persistent or value_id in self._input_index

    def only_in_parts(self) -> set[int]:
        """Return the constants that no step needs in a buffer of their own."""
        inside = {part.id for joined in self.joins.values() for part in joined.parts}
        cut = {name for name, _, _ in self.slices}
        inside |= {value_id for value_id, _, name in self.program.constants() if name in cut}
        for step in self.steps:
            if isinstance(step, BufferCopy):
                inside -= {self.root(step.source.id), self.root(step.destination.id)}
                continue
            for _, resource in step.bindings:
                if isinstance(resource, LiveTensor):
                    inside.discard(self.root(resource.id))
        return inside - set(map(self.root, self.program.outputs))

    def plan_memory(self) -> tuple[MemoryPlan, int]:
        """Return the shared slots of intermediates and scratch, and their bytes without sharing."""
        intervals = self.intervals()
        return share(intervals), sum(interval.nbytes for interval in intervals)

    def intervals(self) -> list[Interval]:
        """Return when intermediates and scratch are needed: by value id, or by the scratch."""
        end = len(self.program.ops)
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for index, call in enumerate(self.program.ops):
            for value_id in (*self.program.reads(call), *self.program.writes(call)):
                if value_id in self.tensors and not self.owns_buffer(self.root(value_id)):
                    first.setdefault(self.root(value_id), index)
                    last[self.root(value_id)] = index
        for value_id in self.program.outputs:
            if self.root(value_id) in last:
                last[self.root(value_id)] = end
        intervals = [
            Interval(root, self.tensors[root].max_bytes, first[root], last[root]) for root in first
        ]
        scratches = [Interval(s, s.nbytes, s.op_index, s.op_index) for s in self.scratches]
        return intervals + scratches

    def _add_step(self, op: Caller, step: LaunchSpec | BufferCopy) -> None:
        self.steps.append(step)
        self.step_ops.append(op.index)

    def _find_mutated(self) -> set[int]:
        """Return the tensors written in place; only values that outlive the op can be."""
        mutated = set()
        for index, call in enumerate(self.program.ops):
            row = REGISTRY[call.name]
            for arg, value_id in zip(row.args, call.args, strict=False):
                if arg not in row.mutates:
                    continue
                if value_id not in self.tensors or not self.owns_buffer(value_id):
                    raise GraphError(
                        f"op {index} ({call.name}) writes '{arg}' in place, but "
                        f"{self.program.label(value_id)} is not an input, a constant or state"
                    )
                mutated.add(value_id)
        return mutated
