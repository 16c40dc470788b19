"""A loaded graph: built once at the largest shapes, run at any live shape and position."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

import py_runtime.ops  # noqa: F401  (fills the registry)
from py_runtime.base.cached_blocks import held_values
from py_runtime.base.concurrency import take_turns, together
from py_runtime.base.errors import GraphError, InputError
from py_runtime.base.html import as_html
from py_runtime.base.progress import Meter
from py_runtime.base.shapes import numel
from py_runtime.base.sizes import in_words
from py_runtime.gpu import (
    PLAN_COLUMNS,
    BindGroup,
    BindGroupSpec,
    Binding,
    Buffer,
    Copy,
    Device,
    Dispatch,
    PipelineSpec,
    Plan,
    PlanStep,
    Read,
    Write,
)
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph.builder import Builder, LaunchSpec
from py_runtime.graph.carried_states import StateCopies, carried_states
from py_runtime.graph.load_checks import check_ops
from py_runtime.graph.memory import MemoryReport
from py_runtime.graph.needed_ops import ops_needed
from py_runtime.graph.pipelines import compile_side_by_side
from py_runtime.graph.placement import Placement
from py_runtime.graph.profile import Profile, profile_of
from py_runtime.graph.resize import LiveGraph, ResizeStats
from py_runtime.graph.rings import rings_of
from py_runtime.graph.shared_constants import copy_known, done, without_constants
from py_runtime.graph.variants import Variant, record_variant
from py_runtime.live.uniforms import SYMINT_BYTES
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.passes import DEFAULT_PASSES, Pass, run_passes
from py_runtime.program import Program, check_program
from py_runtime.weights.constants import ArrayConstants, ConstantSource, Place

Array = np.ndarray


class Graph:
    """A graph on a device: load it once with `Graph.load`, then `run` it as often as you like."""

    def __init__(self, device: Device, builder: Builder, target: KernelTarget) -> None:
        self.device = device
        self.program = builder.program
        self.written = builder.program  # as it was before the passes
        self.passes: tuple[Pass, ...] = ()
        self.target = target
        self.memory: MemoryReport
        self.state_copies: StateCopies | None = None  # of those that cannot be cut back
        self.rings = rings_of(builder.program)  # caches that hold the last positions only
        self._builder = builder
        self.arena = builder.arena
        self._placed = Placement(device, builder)
        self._recorded: list[BindGroup | Plan] = []
        self.variant: Variant | None = None  # whose plan runs, in place of the graph's own
        self._compiling: asyncio.Future[None] | None = None  # pipelines, and the plan with them
        self._counts = np.zeros((len(builder.steps), PLAN_COLUMNS), np.uint32)
        self._live = LiveGraph(builder, self._counts)
        self._step_masks: dict[tuple[int, ...], np.ndarray] = {}
        self.lock = asyncio.Lock()
        self._base: Graph | None = None  # which lends some of its buffers
        self._derived: set[Graph] = set()

    def __repr__(self) -> str:
        return f"Graph({self.program.name!r}, {len(self.program.ops)} ops)"

    def _repr_html_(self) -> str:
        counts = Counter(call.name for call in self.program.ops)
        facts = [
            f"{len(self.program.ops)} ops",
            f"{in_words(self.memory.peak)} of memory",
            f"kernels: {self.target.kernels}",
        ]
        return as_html(self.program.name, facts, ("op", "count"), *counts.most_common())

    # Loading -----------------------------------------------------------------------------------

    @classmethod
    async def load(
        cls,
        device: Device,
        program: Program,
        constants: Mapping[str, Array] | ConstantSource | None = None,
        meter: Meter | None = None,
        target: KernelTarget | None = None,
        passes: Sequence[Pass] = DEFAULT_PASSES,
        compile_later: bool = False,
        base: "Graph | None" = None,
    ) -> "Graph":
        """Check and build everything, or raise and leave nothing on the GPU.

        Pipelines compile while the constants arrive; cancelling stops both first. With
        `compile_later` it does not wait for them: whatever runs the graph does. `target` chooses
        the variants of kernels, by default from the device's features (graph/tuning.py measures).
        `passes` fuse ops; values inside a fused op cannot be probed.

        `base` is a graph of the same model on the same device: its states, and constants that lie
        the same way in both, are shared, and others copied on the device; only those that it lacks
        are asked of `constants`. Both have one lock, and the new graph ends with its base.
        """
        given = constants if constants is not None else {}
        source = given if isinstance(given, ConstantSource) else ArrayConstants(given)
        check_program(program)
        await take_turns()
        check_ops(program)
        await take_turns()
        target = target or (KernelTarget.of(device) if base is None else base.target)
        builder = await _build(program, device.limits, target, passes)
        known = {} if base is None else base.constant_places()
        source.check(program if base is None else without_constants(program, known))
        await take_turns()
        graph = cls(device, builder, target)
        await take_turns()
        graph.written, graph.passes = program, tuple(passes)
        meter = meter or Meter()
        try:
            await graph._allocate(base)
            await take_turns()
            places = graph.constant_places()
            if base is not None:
                places = await copy_known(device, builder.program, known, places)
            upload = source.upload(device, places, meter) if places else done()
            graph._compiling = asyncio.ensure_future(
                graph._create_plan(Meter() if compile_later else meter)
            )
            graph._compiling.add_done_callback(lambda task: task.cancelled() or task.exception())
            await (upload if compile_later else together(graph.compiled(), upload))
        except BaseException:
            if graph._compiling is not None:
                graph._compiling.cancel()
                await asyncio.wait([graph._compiling])
            graph.unload()
            raise
        return graph

    async def compiled(self) -> None:
        """Wait for the pipelines; raise the error if one failed to compile."""
        self._check_loaded()
        if self._compiling is not None and not self._compiling.done():
            await asyncio.wait([self._compiling])
            self._check_loaded()
        if self._compiling is not None:
            self._compiling.result()

    def unload(self) -> None:
        """Free all GPU memory that is its own; neither it nor what has it as a base can run on."""
        for graph in list(self._derived):
            graph.unload()
        if self._base is not None:
            self._base._derived.discard(self)
        if self._compiling is not None:
            self._compiling.cancel()
        self.device.release(self._recorded)
        self._recorded = []
        if self.variant is not None:
            self.variant.release()
            self.variant = None
        self._placed.release()

    async def _allocate(self, base: "Graph | None") -> None:
        if base is not None:
            base._check_loaded()
            assert base.device is self.device, "buffers belong to one device"
            self._base, self.lock = base, base.lock
        await self._placed.allocate({} if base is None else base._placed.lendable)
        if base is not None:
            base._derived.add(self)
        self.memory, self.uniforms = self._placed.report, self._placed.uniforms
        states = [self._placed.buffers[value_id] for value_id in carried_states(self.program)]
        if states:
            copies = self._placed.state_copies
            self.state_copies = StateCopies(self.device, self.program.name, states, copies)
            self._recorded.append(self.state_copies.plan)

    async def _create_plan(self, meter: Meter) -> None:
        launches = [step for step in self._builder.steps if isinstance(step, LaunchSpec)]
        distinct = list(dict.fromkeys(spec.pipeline for spec in launches))
        await compile_side_by_side(self.device, distinct, meter)
        pipelines = await self.device.create_compute_pipelines([spec.pipeline for spec in launches])
        bound: list[BindGroupSpec] = []
        for spec, pipeline in zip(launches, pipelines, strict=True):
            bindings = tuple(self._placed.binding(spec, each) for _, each in spec.bindings)
            names = tuple(name for name, _ in spec.bindings)
            bound.append(BindGroupSpec(spec.launch.label, pipeline, bindings, names))
            await take_turns()
        groups = await self.device.create_bind_groups(bound)
        self._recorded += groups
        ready = iter(zip(pipelines, groups, strict=True))
        steps: list[PlanStep] = []
        for row, step in zip(self._counts, self._builder.steps, strict=True):
            if isinstance(step, LaunchSpec):
                pipeline, group = next(ready)
                steps.append(Dispatch(step.launch.label, pipeline, group))
                step.launch.row = row.data
            else:
                ends = (self._placed.buffers[end.id] for end in (step.source, step.destination))
                steps.append(Copy(step.label, *ends))
                step.row = row.data
        self.recorded_steps = steps
        self._plan = self.device.create_plan(self.program.name, steps)
        self._recorded.append(self._plan)
        await take_turns()
        self._live.settle()

    def constant_places(self) -> dict[str, list[Place]]:
        """Return the places where the bytes of each constant go."""
        return self._placed.constant_places()

    def maybe_resize(self, inputs: Sequence[Any]) -> list[Array]:
        """Propagate dims and SymInts from the inputs through every op they reach, or nothing.

        Return the arrays as the GPU takes them. A failure leaves the graph as it was.
        """
        return self._live.resize(inputs)

    def upload(self, inputs: Sequence[Any]) -> None:
        """Resize to these inputs and send what changed, so that steps of the plan can run alone."""
        self.device.submit(None, None, self.resized(inputs))
        self.arena.uploaded()

    def resized(self, inputs: Sequence[Any]) -> list[Write]:
        """Resize to these inputs and return the uploads of what changed, for the caller to submit.

        Then it calls `arena.uploaded()`.
        """
        return self._writes(self.maybe_resize(inputs))

    @property
    def resize_stats(self) -> ResizeStats:
        return self._live.stats

    # Running -----------------------------------------------------------------------------------

    async def run(self, inputs: Sequence[Any], outputs: Sequence[int] | None = None) -> list[Array]:
        """Compute the outputs with these indices (all when None) at their live shapes.

        Ops that only other outputs need are skipped; tensors written in place always are computed.
        """
        wanted = self._wanted(outputs)
        async with self.lock:
            await self.compiled()
            arrays = self.maybe_resize(inputs)
            writes = self._writes(arrays)
            counts = self.live_counts(wanted)
            tensors = [self._builder.tensors.get(self.program.outputs[at]) for at in wanted]
            reads = [
                Read(self._placed.buffers[tensor.id], tensor.live_bytes)
                for tensor in tensors
                if tensor is not None
            ]
            if reads:
                data = await self.device.submit_and_read(self.plan, counts, writes, reads)
            else:
                self.device.submit(self.plan, counts, writes)
                data = []
            self.arena.uploaded()
            return self._results(wanted, data)

    async def compute(self, inputs: Sequence[Any], outputs: Sequence[int]) -> None:
        """Compute these outputs and leave them on the GPU, in `buffer(program.outputs[at])`."""
        wanted = self._wanted(outputs)
        async with self.lock:
            await self.compiled()
            writes = self._writes(self.maybe_resize(inputs))
            self.device.submit(self.plan, self.live_counts(wanted), writes)
            self.arena.uploaded()

    def live_counts(self, wanted: tuple[int, ...]) -> np.ndarray:
        """Return the plan's table for the last resize, with zeros for steps that are not needed."""
        return np.where(self._step_mask(wanted)[:, None], self._counts, np.uint32(0))

    async def finish(self) -> None:
        """Wait until everything that was submitted is computed."""
        self._check_loaded()
        await self.device.read_buffer(next(iter(self._placed.buffers.values())), 4)

    def _wanted(self, outputs: Sequence[int] | None) -> tuple[int, ...]:
        count = len(self.program.outputs)
        wanted = tuple(range(count) if outputs is None else outputs)
        for index in wanted:
            if not 0 <= index < count:
                raise InputError(f"output {index} was asked for; the graph has 0 to {count - 1}")
        return wanted

    def _writes(self, arrays: list[Array]) -> list[Write]:
        tensor_inputs = [e.value for e in self.program.inputs if e.value in self._builder.tensors]
        writes = [
            Write(self._placed.buffers[value_id], array)
            for value_id, array in zip(tensor_inputs, arrays, strict=True)
            if value_id in self._placed.buffers
        ]
        dirty = self.arena.dirty()
        if dirty is not None:
            writes.append(Write(self.uniforms, dirty[1], dirty[0]))
        return writes

    def _results(self, wanted: tuple[int, ...], data: list[Array]) -> list[Array]:
        """Convert bytes to host arrays; int32 widens to int64 or bool where the graph says so."""
        results, chunks = [], iter(data)
        for index in wanted:
            value_id = self.program.outputs[index]
            if value_id in self._builder.symints:
                results.append(np.array(self._builder.symints[value_id].value, np.int64))
                continue
            results.append(as_host(self._builder.tensors[value_id], next(chunks)))
        return results

    def _step_mask(self, wanted: tuple[int, ...]) -> np.ndarray:
        """Return which steps a set of outputs needs; cached."""
        if wanted not in self._step_masks:
            needed = ops_needed(self.program, wanted)
            self._step_masks[wanted] = needed[np.array(self._builder.step_ops, int)]
        return self._step_masks[wanted]

    # Looking inside ----------------------------------------------------------------------------

    async def run_with_probes(
        self,
        inputs: Sequence[Any],
        probes: Sequence[tuple[int, int]],
        change: "Change | None" = None,
    ) -> list[Array]:
        """Run the whole chain and stop on the way to read tensors, in chain order.

        A probe (number of ops, tensor) reads the tensor after that many ops have run, before
        another value takes its memory. `change` may give other numbers in its place, with which the
        chain goes on.
        """
        async with self.lock:
            await self.compiled()
            self.upload(inputs)
            step_ops, begin, arrays = np.array(self._builder.step_ops, int), 0, []
            for end, value_id in probes:
                counts = np.where(_between(step_ops, begin, end), self._counts, np.uint32(0))
                tensor, begin = self._builder.tensors[value_id], end
                offset = self._placed.offsets.get(value_id, 0)
                read = Read(self._placed.buffers[value_id], tensor.live_bytes, offset)
                (data,) = await self.device.submit_and_read(self.plan, counts, [], [read])
                arrays.append(as_host(tensor, data))
                changed = None if change is None else await change(value_id, arrays[-1])
                if changed is not None:
                    arrays[-1] = changed
                    numbers = np.ascontiguousarray(changed, tensor.dtype.gpu).reshape(tensor.dims)
                    self.device.write_buffer(read.buffer, numbers, offset)
            rest = _between(step_ops, begin, len(self.program.ops))
            self.device.submit(self.plan, np.where(rest, self._counts, np.uint32(0)))
            return arrays

    async def read(self, value_id: int, rows: int | None = None) -> Array:
        """Read a tensor that still has its memory: a constant, a state, an output of the last run.

        `rows`: so many of the last dim but two.
        """
        tensor = self._builder.tensors[value_id]
        self._check_loaded()
        dims = tensor.dims
        if rows is not None:
            dims = (*dims[:-3], min(rows, dims[-3]), *dims[-2:])
        nbytes, offset = tensor.dtype.bytes_of(numel(dims)), self._placed.offsets.get(value_id, 0)
        data = await self.device.read_buffer(self._placed.buffers[value_id], nbytes, offset)
        return held_values(tensor.dtype, data).reshape(dims)

    async def profile(
        self, inputs: Sequence[Any], outputs: Sequence[int] | None = None, repeats: int = 5
    ) -> Profile:
        """Measure where the GPU's time goes in `run`, after a run that warms up.

        Times are means of several runs, because browsers round timestamps. State is written as in
        any run.
        """
        wanted = self._wanted(outputs)
        async with self.lock:
            await self.compiled()
            self.upload(inputs)
            counts = self.live_counts(wanted)
            runs = [await self.device.time_steps(self.plan, counts) for _ in range(repeats + 1)]
        return profile_of(self._builder, counts, np.mean(runs[1:], axis=0))

    @property
    def builder(self) -> Builder:
        """Return the static side: ops, launches, what shares memory."""
        return self._builder

    @property
    def placed(self) -> Placement:
        """Return where values lie on the device."""
        return self._placed

    @property
    def base(self) -> "Graph | None":
        """Return the graph that lends some of its buffers."""
        return self._base

    @property
    def plan(self) -> Plan:
        """Return the plan that runs replay, once `compiled`."""
        return self._plan if self.variant is None else self.variant.plan

    @property
    def own_plan(self) -> Plan:
        """Return the plan of the engine's own kernels."""
        return self._plan

    @property
    def plan_steps(self) -> list[PlanStep]:
        return self.recorded_steps if self.variant is None else self.variant.steps

    async def with_kernels(self, pipelines: Mapping[int, PipelineSpec]) -> Variant:
        """Record the plan with other kernels in these steps; it runs once it is adopted."""
        await self.compiled()
        return await record_variant(
            self.device, self._builder, self._placed, self.recorded_steps, pipelines
        )

    def adopt(self, variant: Variant | None) -> Variant | None:
        """Run a variant's plan from now on, or the graph's own; return the one before."""
        before, self.variant = self.variant, variant
        return before

    def read_symint(self, value_id: int) -> int:
        return self._symint(value_id).value

    def symint_binding(self, value_id: int) -> Binding:
        """Return the binding of the 16 uniform bytes from which kernels read the SymInt."""
        return Binding(self.uniforms, self._symint(value_id).slot(self.arena), SYMINT_BYTES)

    def live_dims(self, value_id: int) -> tuple[int, ...]:
        if value_id not in self._builder.tensors:
            raise GraphError(f"value {value_id} of graph '{self.program.name}' is not a tensor")
        return self._builder.tensors[value_id].dims

    def buffer(self, value_id: int) -> Buffer:
        """Return the tensor's buffer, which stays the same for the graph's whole life."""
        self.live_dims(value_id)
        self._check_loaded()
        return self._placed.buffers[value_id]

    @property
    def is_loaded(self) -> bool:
        return bool(self._placed.owned)

    def _check_loaded(self) -> None:
        if not self.is_loaded:
            raise GraphError(f"graph '{self.program.name}' was unloaded")

    def _symint(self, value_id: int) -> LiveInt:
        if value_id not in self._builder.symints:
            raise GraphError(f"value {value_id} of graph '{self.program.name}' is not a SymInt")
        return self._builder.symints[value_id]


# (tensor, its numbers) → others, or None to leave them.
Change = Callable[[int, Array], Awaitable[Array | None]]


def as_host(tensor: LiveTensor, data: Array) -> Array:
    """Return a tensor's bytes as the host's array at its live dims."""
    return held_values(tensor.dtype, data).reshape(tensor.dims)


async def _build(
    program: Program, limits: dict[str, int], target: KernelTarget, passes: Sequence[Pass]
) -> Builder:
    """Run the passes and build the ops."""
    for each in passes:
        program = run_passes(program, target, (each,))
        await take_turns()
    builder = Builder(program, limits, target)
    for _ in builder.build_each_op():
        await take_turns()
    return builder


def _between(step_ops: Array, begin: int, end: int) -> Array:
    """Return which rows of the count table belong to these ops: bool [steps, 1]."""
    return ((step_ops >= begin) & (step_ops < end))[:, None]
