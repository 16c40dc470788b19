"""The CPU behind the same interface as a GPU: buffers, pipelines, bind groups and plans.

Everything lies in one WebAssembly memory, and a handle is an address in it. Python writes the
tables that the kernels' runtime (shaders/cpu/replay.c) reads; a `Machine` has the memory and the
threads, natively (cpu/native.py) or in the page (cpu/page.py).
"""

import asyncio
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from py_runtime.base.errors import GpuDeviceLostError, GpuValidationError
from py_runtime.cpu.kernel_table import (
    constant_bits,
    kernel_number,
    kernel_table,
    plugged_fragments,
)
from py_runtime.cpu.memory import Addresses
from py_runtime.gpu.interface import CPU, TIMESTAMPS, Device
from py_runtime.gpu.objects import (
    PLAN_COLUMNS,
    AdapterInfo,
    BindGroup,
    BindGroupSpec,
    Buffer,
    BufferSpec,
    Copy,
    Pipeline,
    PipelineSpec,
    Plan,
    PlanStep,
    Read,
    Write,
)

MAX_MEMORY = 65535 << 16  # bytes of a WebAssembly memory
SCRATCH_BYTES = 1 << 20  # of a thread; shaders/cpu/kernel.h has the same figure
STACK_BYTES = 1 << 17
WORD = 4
STEP_WORDS = 3  # call, source, destination
# What kernels for GPUs must respect; here only memory is limited.
LIMITS = {
    "max_buffer_size": MAX_MEMORY,
    "max_storage_buffer_binding_size": MAX_MEMORY,
    "max_storage_buffers_per_shader_stage": 64,
    "max_compute_workgroups_per_dimension": 2**31 - 1,
    "max_compute_invocations_per_workgroup": 2**16,
    "max_compute_workgroup_storage_size": 2**20,
    "min_uniform_buffer_offset_alignment": 16,
}


class Machine(ABC):
    """A WebAssembly memory with the kernels in it, and threads that run them."""

    threads: int
    heap_base: int  # the first address that the kernels leave free

    @abstractmethod
    def grow(self, nbytes: int) -> None:
        """Make the memory at least so large."""

    @abstractmethod
    def write(self, address: int, data: np.ndarray) -> None: ...

    @abstractmethod
    def read(self, address: int, nbytes: int) -> np.ndarray: ...

    @abstractmethod
    def clear(self, address: int, nbytes: int) -> None: ...

    @abstractmethod
    def kernel_at(self, number: int) -> tuple[int, int]:
        """Return the address of a kernel's function, and the workgroups that are worth a thread."""

    @abstractmethod
    def fragment_at(self, number: int) -> int: ...

    @abstractmethod
    def open_pool(self, scratch: int, stacks: int) -> None:
        """Start the threads; each has its part of the scratch memory and of the stacks."""

    @abstractmethod
    def replay(self, steps: int, counts: int, last: int, repeat: int) -> None:
        """Replay a plan's steps and return when all is computed."""

    @abstractmethod
    def time_step(self, steps: int, counts: int, at: int) -> float:
        """Replay one step and return its nanoseconds."""

    @abstractmethod
    def close(self) -> None: ...


class CpuPlan(Plan):
    """A plan whose steps and counts lie in the kernels' memory."""

    steps_at: int
    counts_at: int


class CpuDevice(Device):
    """The CPU as a device; work is done when a submit returns."""

    kind = CPU

    def __init__(self, machine: Machine) -> None:
        adapter = AdapterInfo("", "", "", f"CPU, {machine.threads} threads", False, 0, 0)
        super().__init__(adapter, frozenset({TIMESTAMPS}), dict(LIMITS))
        self._machine = machine
        self._addresses = Addresses(machine.heap_base, MAX_MEMORY)
        self._used = self._addresses.end  # memory beyond has never been written to
        self._is_destroyed = False
        threads = machine.threads
        scratch = self._allocate("scratch of the threads", threads * SCRATCH_BYTES)
        stacks = self._allocate("stacks of the threads", threads * STACK_BYTES)
        machine.open_pool(scratch, stacks)
        self._close = weakref.finalize(self, machine.close)  # also when nothing is on it any more
        self._close.atexit = False

    @property
    def threads(self) -> int:
        return self._machine.threads

    @property
    def bytes_left(self) -> int:
        return self._addresses.bytes_left

    def _allocate(self, label: str, nbytes: int) -> int:
        address = self._addresses.allocate(label, nbytes)
        self._machine.grow(self._addresses.end)
        if address < self._used:
            self._machine.clear(address, min(nbytes, self._used - address))
        self._used = max(self._used, self._addresses.end)
        return address

    def _put(self, label: str, table: np.ndarray) -> int:
        """Return the address of a copy of a table."""
        address = self._allocate(label, table.nbytes)
        self._machine.write(address, table)
        return address

    async def _create_buffers(self, specs: Sequence[BufferSpec]) -> list[Buffer]:
        self._check()
        buffers: list[Buffer] = []
        try:
            for spec in specs:
                address = self._allocate(spec.label, spec.size)
                buffers.append(Buffer(spec.label, address, spec.size, spec.usage))
        except BaseException:
            self._destroy_buffers(buffers)
            raise
        return buffers

    async def _create_compute_pipelines(self, specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        """Write a `Pipeline` of shaders/cpu/kernel.h for each spec."""
        self._check()
        table = kernel_table()
        pipelines = []
        for spec in specs:
            if spec.kernel is None:
                raise GpuValidationError(f"'{spec.label}' is WGSL alone, which a CPU cannot run")
            run, grain = self._machine.kernel_at(kernel_number(spec.kernel.kernel.name))
            plugs = np.zeros(len(table.slots), np.uint32)
            for slot, fragment in plugged_fragments(spec.kernel).items():
                plugs[slot] = self._machine.fragment_at(fragment)
            constants = constant_bits(spec.kernel, dict(spec.constants))
            row = np.concatenate([np.array([run, grain], np.uint32), plugs, constants])
            pipelines.append(Pipeline(spec.label, self._put(spec.label, row)))
        return pipelines

    async def _create_bind_groups(self, specs: Sequence[BindGroupSpec]) -> list[BindGroup]:
        """Write a `Call` of shaders/cpu/kernel.h for each spec."""
        self._check()
        table = kernel_table()
        groups = []
        for spec in specs:
            row = np.zeros(1 + len(table.bindings), np.uint32)
            row[0] = spec.pipeline.handle
            for name, binding in zip(spec.names, spec.bindings, strict=True):
                row[1 + table.bindings[name]] = binding.buffer.handle + binding.offset
            groups.append(BindGroup(spec.label, self._put(spec.label, row)))
        return groups

    def create_plan(self, label: str, steps: Sequence[PlanStep]) -> Plan:
        self._check()
        plan = CpuPlan(label, steps)
        table = np.zeros((max(len(steps), 1), STEP_WORDS), np.uint32)
        for row, step in zip(table, steps, strict=False):
            if isinstance(step, Copy):
                row[1:] = step.source.handle, step.destination.handle
            else:
                row[0] = step.bind_group.handle
        plan.steps_at = self._put(label, table)
        plan.counts_at = self._allocate(label, len(table) * PLAN_COLUMNS * WORD)
        return plan

    def _submit(
        self, plan: Plan | None, counts: np.ndarray | None, writes: Sequence[Write]
    ) -> None:
        self._run(plan, counts, writes, 1)

    def _submit_to_read(
        self,
        plan: Plan | None,
        counts: np.ndarray | None,
        writes: Sequence[Write],
        reads: Sequence[Read],
        repeat: int,
    ) -> "asyncio.Future[list[np.ndarray]]":
        future: asyncio.Future[list[np.ndarray]] = asyncio.get_running_loop().create_future()
        self._run(plan, counts, writes, repeat)
        future.set_result(
            [self._machine.read(read.buffer.handle + read.offset, read.nbytes) for read in reads]
        )
        return future

    def _run(
        self, plan: Plan | None, counts: np.ndarray | None, writes: Sequence[Write], repeat: int
    ) -> None:
        self._check()
        for write in writes:
            self._machine.write(write.buffer.handle + write.offset, write.data)
        if isinstance(plan, CpuPlan) and counts is not None:
            self._machine.write(plan.counts_at, counts)
            self._machine.replay(plan.steps_at, plan.counts_at, len(plan.steps), repeat)

    async def _submit_timed(
        self, plan: Plan, counts: np.ndarray, timed: int, ticks: Buffer
    ) -> None:
        self._check()
        assert isinstance(plan, CpuPlan)
        self._machine.write(plan.counts_at, counts)
        taken = []
        for at, is_dispatch in enumerate(plan.is_dispatch):
            nanoseconds = self._machine.time_step(plan.steps_at, plan.counts_at, at)
            if is_dispatch and counts[at, 0]:
                taken.append((0, int(nanoseconds)))
        self._machine.write(ticks.handle, np.array(taken, np.int64).reshape(-1))

    def _destroy_buffers(self, buffers: Sequence[Buffer]) -> None:
        if not self._is_destroyed:
            for buffer in buffers:
                self._addresses.free(buffer.handle)

    def release(self, objects: Sequence[BindGroup | Plan]) -> None:
        if self._is_destroyed:
            return
        for each in objects:
            if isinstance(each, CpuPlan):
                self._addresses.free(each.steps_at)
                self._addresses.free(each.counts_at)
            elif isinstance(each, BindGroup):
                self._addresses.free(each.handle)

    def destroy(self) -> None:
        self._is_destroyed = True
        self._close()

    def _check(self) -> None:
        if self._is_destroyed:
            raise GpuDeviceLostError("the device was destroyed; request a new one")
