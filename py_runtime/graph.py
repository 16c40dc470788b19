"""A loaded graph: built once at the largest shapes, run at any live shape and position."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import py_runtime.ops  # noqa: F401  (fills the registry)
from py_runtime.buffers import UNIFORMS, plan_buffers
from py_runtime.builder import Builder, LaunchSpec
from py_runtime.constants import ArrayConstants, ConstantSource
from py_runtime.errors import GraphError, InputError
from py_runtime.gpu import (
    PLAN_COLUMNS,
    BindGroup,
    BindGroupSpec,
    Binding,
    Buffer,
    Copy,
    Device,
    Dispatch,
    Plan,
    PlanStep,
    Read,
    Write,
)
from py_runtime.host_arrays import as_gpu_array, as_int
from py_runtime.launch import Bindable
from py_runtime.live import LiveInt, LiveTensor
from py_runtime.load_checks import check_ops
from py_runtime.memory import MemoryReport
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import Program, SymIntValue, TensorValue, check_program
from py_runtime.uniforms import SYMINT_BYTES

Array = np.ndarray


@dataclass
class ResizeStats:
    """How much live work the last call did; a static graph's calls do none."""

    ops_resized: int = 0


class Graph:
    """Use `await Graph.load(...)`, then `await graph.run(inputs)` as often as you like."""

    def __init__(self, device: Device, builder: Builder) -> None:
        self.device = device
        self.program = builder.program
        self.resize_stats = ResizeStats()
        self.memory: MemoryReport
        self._builder = builder
        self._journal = builder.journal
        self._arena = builder.arena
        self._buffers: dict[int, Buffer] = {}  # of each tensor, by value id
        self._owned: list[Buffer] = []
        self._recorded: list[BindGroup | Plan] = []
        self._counts = np.zeros((len(builder.steps), PLAN_COLUMNS), np.uint32)
        self._step_masks: dict[tuple[int, ...], np.ndarray] = {}
        self._settled = False  # whether every op has seen live state
        self._lock = asyncio.Lock()

    # Loading -----------------------------------------------------------------------------------

    @classmethod
    async def load(
        cls,
        device: Device,
        program: Program,
        constants: Mapping[str, Array] | ConstantSource | None = None,
    ) -> "Graph":
        """Checks and builds everything, or raises and leaves nothing on the GPU."""
        given = constants if constants is not None else {}
        source = given if isinstance(given, ConstantSource) else ArrayConstants(given)
        check_program(program)
        check_ops(program)
        builder = Builder(program, device.limits)
        builder.build_ops()
        source.check(program)
        graph = cls(device, builder)
        try:
            await graph._allocate()
            await graph._create_plan()
            await source.upload(device, graph._constant_buffers())
            graph._settle()
        except BaseException:
            graph.unload()
            raise
        return graph

    def unload(self) -> None:
        """Gives all GPU memory back; the graph cannot run afterwards."""
        self.device.release(self._recorded)
        self.device.destroy_buffers(self._owned)
        self._recorded = []
        self._owned = []
        self._buffers = {}

    async def _allocate(self) -> None:
        builder, plan = self._builder, plan_buffers(self._builder)
        buffers = await self.device.create_buffers(list(plan.specs.values()))
        self._owned = buffers
        by_key = dict(zip(plan.specs, buffers, strict=True))
        self._uniforms = by_key[UNIFORMS]
        self._scratch_buffers = {
            scratch: by_key[plan.key_of[scratch]] for scratch in builder.scratches
        }
        for value_id in builder.tensors:
            root = builder.root(value_id)
            if root in plan.key_of:  # a tensor that no op touches has no memory
                self._buffers[value_id] = by_key[plan.key_of[root]]
        self.memory = plan.report

    async def _create_plan(self) -> None:
        launches = [step for step in self._builder.steps if isinstance(step, LaunchSpec)]
        pipelines = await self.device.create_compute_pipelines([spec.pipeline for spec in launches])
        groups = await self.device.create_bind_groups(
            [
                BindGroupSpec(
                    spec.launch.label,
                    pipeline,
                    tuple(self._binding(spec, resource) for _, resource in spec.bindings),
                )
                for spec, pipeline in zip(launches, pipelines, strict=True)
            ]
        )
        self._recorded = list(groups)
        ready = iter(zip(pipelines, groups, strict=True))
        steps: list[PlanStep] = []
        for row, step in zip(self._counts, self._builder.steps, strict=True):
            if isinstance(step, LaunchSpec):
                pipeline, group = next(ready)
                steps.append(Dispatch(step.launch.label, pipeline, group))
                step.launch.row = row
            else:
                source, target = self._buffers[step.source.id], self._buffers[step.target.id]
                steps.append(Copy(step.label, source, target))
                step.row = row
        self._plan = self.device.create_plan(self.program.name, steps)
        self._recorded.append(self._plan)

    def _binding(self, spec: LaunchSpec, resource: Bindable | None) -> Binding:
        if resource is None:
            return Binding(self._uniforms, spec.launch.offset, spec.launch.layout.struct.size)
        if isinstance(resource, LiveInt):
            return Binding(self._uniforms, resource.slot(self._arena), SYMINT_BYTES)
        if isinstance(resource, LiveTensor):
            buffer = self._buffers[resource.id]
        else:
            buffer = self._scratch_buffers[resource]
        limit = self.device.limits["max_storage_buffer_binding_size"]
        if buffer.size > limit:
            raise GraphError(
                f"{resource.label} takes {buffer.size} bytes; this device binds at most {limit}"
            )
        return Binding(buffer)

    def _constant_buffers(self) -> dict[str, list[Buffer]]:
        buffers: dict[str, list[Buffer]] = {}
        for value_id, value in enumerate(self.program.values):
            if isinstance(value, TensorValue) and value.constant is not None:
                targets = buffers.setdefault(value.constant, [])
                if self._buffers[value_id] not in targets:
                    targets.append(self._buffers[value_id])
        return buffers

    # Live state --------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Every op sees the largest shapes once, so that a first call there finds all in place."""
        for live_int in self._builder.symints.values():
            live_int.upload()
        self._journal.queue(range(len(self.program.ops)))
        try:
            self._propagate()
            self._settled = True
        except InputError as error:
            self._journal.rollback()
            if not self._builder.symints:
                raise GraphError(str(error)) from None
            # A SymInt's starting value may fit no shape; then the first call settles every op.
        self._journal.commit()

    def _propagate(self) -> None:
        """Chain order, dims and SymInts together: no op ever sees the last call's state."""
        while (index := self._journal.next_op()) is not None:
            self._builder.ops[index].live()
            self.resize_stats.ops_resized += 1

    def maybe_resize(self, inputs: Sequence[Any]) -> list[Array]:
        """Live dims and SymInts from the inputs, through every op that they reach; all or nothing.

        Gives the arrays as the GPU wants them. A failure leaves the graph as it was.
        """
        self.resize_stats.ops_resized = 0
        try:
            arrays = self._take_inputs(inputs)
            for source in self._builder.host_sources:
                source.op.read_host(np.asarray(inputs[source.place]))
            if not self._settled:
                self._journal.queue(range(len(self.program.ops)))
            self._propagate()
        except BaseException:
            self._journal.rollback()
            raise
        self._settled = True
        self._journal.commit()
        return arrays

    def _take_inputs(self, inputs: Sequence[Any]) -> list[Array]:
        if len(inputs) != len(self.program.inputs):
            raise InputError(
                f"the graph takes {len(self.program.inputs)} inputs, got {len(inputs)}"
            )
        arrays = []
        for place, (entry, given) in enumerate(zip(self.program.inputs, inputs, strict=True)):
            if isinstance(self.program.values[entry.value], SymIntValue):
                self._builder.symints[entry.value].set(as_int(place, given))
                continue
            tensor = self._builder.tensors[entry.value]
            array = as_gpu_array(place, tensor, given)
            tensor.check_dims(array.shape)
            for axis, size in enumerate(array.shape):
                if axis not in entry.dynamic_dims and size != tensor.max_dims[axis]:
                    raise InputError(
                        f"input {place} ({tensor.label}): dim {axis} is {size}, but it is fixed "
                        f"at {tensor.max_dims[axis]}"
                    )
            tensor.resize(array.shape)
            arrays.append(array)
        return arrays

    # Running -----------------------------------------------------------------------------------

    async def run(self, inputs: Sequence[Any], outputs: Sequence[int] | None = None) -> list[Array]:
        """Computes the outputs with these indices (all when None), as arrays at their live shapes.

        What only other outputs need is not computed; tensors written in place always are.
        """
        wanted = self._wanted(outputs)
        async with self._lock:
            self._check_loaded()
            arrays = self.maybe_resize(inputs)
            writes = self._writes(arrays)
            counts = np.where(self._step_mask(wanted)[:, None], self._counts, np.uint32(0))
            tensors = [self._builder.tensors.get(self.program.outputs[at]) for at in wanted]
            reads = [
                Read(self._buffers[tensor.id], tensor.live_bytes)
                for tensor in tensors
                if tensor is not None
            ]
            if reads:
                data = await self.device.submit_and_read(self._plan, counts, writes, reads)
            else:
                self.device.submit(self._plan, counts, writes)
                data = []
            self._arena.uploaded()
            return self._results(wanted, data)

    def _wanted(self, outputs: Sequence[int] | None) -> tuple[int, ...]:
        count = len(self.program.outputs)
        wanted = tuple(range(count) if outputs is None else outputs)
        for place in wanted:
            if not 0 <= place < count:
                raise InputError(f"output {place} was asked for; the graph has 0 to {count - 1}")
        return wanted

    def _writes(self, arrays: list[Array]) -> list[Write]:
        tensor_inputs = [e.value for e in self.program.inputs if e.value in self._builder.tensors]
        writes = [
            Write(self._buffers[value_id], array)
            for value_id, array in zip(tensor_inputs, arrays, strict=True)
            if value_id in self._buffers
        ]
        dirty = self._arena.dirty()
        if dirty is not None:
            writes.append(Write(self._uniforms, dirty[1], dirty[0]))
        return writes

    def _results(self, wanted: tuple[int, ...], data: list[Array]) -> list[Array]:
        """Bytes as host arrays: int32 widens to int64 and to bool where the graph says so."""
        results, chunks = [], iter(data)
        for place in wanted:
            value_id = self.program.outputs[place]
            if value_id in self._builder.symints:
                results.append(np.array(self._builder.symints[value_id].value, np.int64))
                continue
            tensor = self._builder.tensors[value_id]
            array = next(chunks).view(tensor.dtype.gpu).reshape(tensor.dims)
            results.append(array.astype(tensor.dtype.host, copy=False))
        return results

    def _step_mask(self, wanted: tuple[int, ...]) -> np.ndarray:
        """Which steps a set of outputs needs: walks the chain backwards once, then remembers."""
        if wanted not in self._step_masks:
            program = self.program
            needed = {program.outputs[place] for place in wanted}
            op_needed = np.zeros(len(program.ops), bool)
            for index in reversed(range(len(program.ops))):
                call = program.ops[index]
                mutates = bool(REGISTRY[call.name].mutates)
                if mutates or not needed.isdisjoint(program.writes(call)):
                    op_needed[index] = True
                    needed.update(program.reads(call))
            self._step_masks[wanted] = op_needed[np.array(self._builder.step_ops, int)]
        return self._step_masks[wanted]

    # Looking inside ----------------------------------------------------------------------------

    def read_symint(self, value_id: int) -> int:
        return self._symint(value_id).value

    def symint_binding(self, value_id: int) -> Binding:
        """The 16 uniform bytes that kernels read the SymInt from."""
        return Binding(self._uniforms, self._symint(value_id).slot(self._arena), SYMINT_BYTES)

    def live_dims(self, value_id: int) -> tuple[int, ...]:
        if value_id not in self._builder.tensors:
            raise GraphError(f"value {value_id} of graph '{self.program.name}' is not a tensor")
        return self._builder.tensors[value_id].dims

    def buffer(self, value_id: int) -> Buffer:
        """The tensor's buffer: the same one for the graph's whole life."""
        self.live_dims(value_id)
        self._check_loaded()
        return self._buffers[value_id]

    def _check_loaded(self) -> None:
        if not self._owned:
            raise GraphError(f"graph '{self.program.name}' was unloaded")

    def _symint(self, value_id: int) -> LiveInt:
        if value_id not in self._builder.symints:
            raise GraphError(f"value {value_id} of graph '{self.program.name}' is not a SymInt")
        return self._builder.symints[value_id]
