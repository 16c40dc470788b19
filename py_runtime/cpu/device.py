"""The CPU behind the same interface as a GPU: buffers, pipelines, bind groups and plans.

Everything lies in one WebAssembly memory, and a handle is an address in it. Python writes the
tables that the kernels' runtime (shaders/cpu/replay.c) reads; a `Machine` has the memory and the
threads, natively (cpu/native.py) or in the page (cpu/page.py).
"""

import asyncio
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from py_runtime.base.concurrency import take_turns
from py_runtime.base.defaults import CPU
from py_runtime.base.errors import GpuDeviceLostError, GpuValidationError
from py_runtime.cpu.kernel_table import (
    constant_bits,
    kernel_number,
    kernel_table,
    plugged_fragments,
)
from py_runtime.cpu.memory import Addresses
from py_runtime.gpu.interface import TIMESTAMPS, Device
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

PAGE = 1 << 16  # what a WebAssembly memory is counted in
MAX_PAGES = 65535  # of which it has at most; one more, and its size would not fit 32 bits
SCRATCH_BYTES = 1 << 20  # of a thread; shaders/cpu/kernel.h has the same figure
CLEARED_AT_ONCE = 1 << 22  # bytes; some milliseconds
STACK_BYTES = 1 << 17
WORD = 4
NO_SPLITS = 1  # of a pipeline's chunks, at first
STEP_WORDS = 3  # call, source, destination


class CpuPlan(Plan):
    """A plan whose steps and counts lie in the kernels' memory."""

    steps_at: int
    counts_at: int


@dataclass(frozen=True)
class Task:
    """Work that a machine does in one go: it writes, replays a plan, and reads."""

    writes: Sequence[tuple[int, np.ndarray]] = ()  # (address, data)
    plan: CpuPlan | None = None
    repeat: int = 1
    reads: Sequence[tuple[int, int]] = ()  # (address, bytes)


class Machine(ABC):
    """A WebAssembly memory with the kernels in it, and threads that run them.

    Whatever touches the memory is done in the order in which it was asked for, be it at once or
    later: a task's data are taken before `start` and `ask` return. A machine that is lost says so
    with GpuDeviceLostError.
    """

    threads: int
    heap_base: int  # the first address that the kernels leave free
    max_memory: int  # bytes

    @abstractmethod
    def call(self, function: str, *arguments: float) -> int:
        """Call one of the kernels' own functions at once: it must not depend on the memory."""

    @abstractmethod
    def grow(self, nbytes: int) -> None:
        """Make the memory at least so large; GpuOutOfMemoryError if that cannot be."""

    @abstractmethod
    def clear(self, address: int, nbytes: int) -> None:
        """Fill what was allocated with zeros; it may be rounded up to the alignment."""

    @abstractmethod
    def start_thread(self, number: int, stack: int) -> None:
        """Start a thread that helps; its stack grows downwards from an address."""

    @abstractmethod
    def start(self, task: Task) -> None:
        """Begin a task whose end nobody waits for."""

    @abstractmethod
    def ask(self, task: Task) -> "asyncio.Future[list[np.ndarray]]":
        """Begin a task and return an awaitable for what it reads."""

    @abstractmethod
    def time_steps(self, plan: CpuPlan) -> "asyncio.Future[np.ndarray]":
        """Replay a plan and return an awaitable for each step's nanoseconds: float64 [steps]."""

    @abstractmethod
    def close(self) -> None: ...


class CpuDevice(Device):
    """The CPU as a device; the machine does what is submitted, in order."""

    kind = CPU

    def __init__(self, machine: Machine) -> None:
        adapter = AdapterInfo("", "", "", f"CPU, {machine.threads} threads", False, 0, 0)
        super().__init__(adapter, frozenset({TIMESTAMPS}), _limits(machine.max_memory))
        self._machine = machine
        self._addresses = Addresses(machine.heap_base, machine.max_memory)
        self._used = self._addresses.end  # memory beyond has never been written to
        self._is_destroyed = False
        threads = machine.threads
        scratch, _ = self._allocate("scratch of the threads", threads * SCRATCH_BYTES)
        stacks, _ = self._allocate("stacks of the threads", threads * STACK_BYTES)
        self._close = weakref.finalize(self, machine.close)  # also when nothing is on it any more
        self._close.atexit = False
        machine.call("open_pool", threads, scratch)
        for number in range(1, threads):
            machine.start_thread(number, stacks + (number + 1) * STACK_BYTES)

    @property
    def threads(self) -> int:
        return self._machine.threads

    @property
    def bytes_left(self) -> int:
        return self._addresses.bytes_left

    def _allocate(self, label: str, nbytes: int) -> tuple[int, int]:
        """Return the address of so many bytes, and how many of them have been written to."""
        address = self._addresses.allocate(label, nbytes)
        try:
            self._machine.grow(self._addresses.end)
        except BaseException:
            self._addresses.free(address)
            raise
        written = max(min(nbytes, self._used - address), 0)
        self._used = max(self._used, self._addresses.end)
        return address, written

    def _put(self, label: str, table: np.ndarray) -> int:
        """Return the address of a copy of a table."""
        address, _ = self._allocate(label, table.nbytes)
        self._machine.start(Task([(address, table)]))
        return address

    async def _put_all(self, tables: Iterable[tuple[str, np.ndarray]]) -> list[tuple[str, int]]:
        """Return the labels of tables with the addresses of copies of them, all or nothing."""
        placed: list[tuple[str, int]] = []
        try:
            for label, table in tables:
                placed.append((label, self._put(label, table)))
                await take_turns()
        except BaseException:
            for _, address in placed:
                self._addresses.free(address)
            raise
        return placed

    async def _create_buffers(self, specs: Sequence[BufferSpec]) -> list[Buffer]:
        self._check()
        buffers: list[Buffer] = []
        try:
            for spec in specs:
                address, written = self._allocate(spec.label, spec.size)
                buffers.append(Buffer(spec.label, address, spec.size, spec.usage))
                for start in range(0, written, CLEARED_AT_ONCE):
                    await take_turns()
                    self._machine.clear(address + start, min(CLEARED_AT_ONCE, written - start))
        except BaseException:
            self._destroy_buffers(buffers)
            raise
        return buffers

    async def _create_compute_pipelines(self, specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        """Write a `Pipeline` of shaders/cpu/kernel.h for each spec."""
        self._check()
        table = kernel_table()

        def row(spec: PipelineSpec) -> np.ndarray:
            if spec.kernel is None:
                raise GpuValidationError(f"'{spec.label}' is WGSL alone, which a CPU cannot run")
            number = kernel_number(spec.kernel.kernel.name)
            run, grain = (self._machine.call(name, number) for name in ("kernel_at", "grain_of"))
            plugs = np.zeros(len(table.slots), np.uint32)
            for slot, fragment in plugged_fragments(spec.kernel).items():
                plugs[slot] = self._machine.call("fragment_at", fragment)
            constants = constant_bits(spec.kernel, dict(spec.constants))
            return np.concatenate([np.array([run, grain, NO_SPLITS], np.uint32), plugs, constants])

        placed = await self._put_all((spec.label, row(spec)) for spec in specs)
        return [Pipeline(label, address) for label, address in placed]

    async def _create_bind_groups(self, specs: Sequence[BindGroupSpec]) -> list[BindGroup]:
        """Write a `Call` of shaders/cpu/kernel.h for each spec."""
        self._check()
        table = kernel_table()

        def row(spec: BindGroupSpec) -> np.ndarray:
            call = np.zeros(1 + len(table.bindings), np.uint32)
            call[0] = spec.pipeline.handle
            for name, binding in zip(spec.names, spec.bindings, strict=True):
                call[1 + table.bindings[name]] = binding.buffer.handle + binding.offset
            return call

        placed = await self._put_all((spec.label, row(spec)) for spec in specs)
        return [BindGroup(label, address) for label, address in placed]

    def create_plan(self, label: str, steps: Sequence[PlanStep]) -> Plan:
        self._check()
        plan = CpuPlan(label, steps)
        table = np.zeros((max(len(steps), 1), STEP_WORDS), np.uint32)
        for row, step in zip(table, steps, strict=False):
            if isinstance(step, Copy):
                row[1:] = step.source.handle, step.destination.handle
            else:
                row[0] = step.bind_group.handle
        counts = np.zeros((len(table), PLAN_COLUMNS), np.uint32)
        plan.steps_at = self._put(label, table)
        try:
            plan.counts_at = self._put(label, counts)
        except BaseException:
            self._addresses.free(plan.steps_at)
            raise
        return plan

    def _submit(
        self, plan: Plan | None, counts: np.ndarray | None, writes: Sequence[Write]
    ) -> None:
        self._check()
        self._machine.start(_task(plan, counts, writes))

    def _submit_to_read(
        self,
        plan: Plan | None,
        counts: np.ndarray | None,
        writes: Sequence[Write],
        reads: Sequence[Read],
        repeat: int,
    ) -> "asyncio.Future[list[np.ndarray]]":
        self._check()
        places = [(read.buffer.handle + read.offset, read.nbytes) for read in reads]
        return self._machine.ask(replace(_task(plan, counts, writes), repeat=repeat, reads=places))

    async def _submit_timed(
        self, plan: Plan, counts: np.ndarray, timed: int, ticks: Buffer
    ) -> None:
        self._check()
        assert isinstance(plan, CpuPlan)
        self._machine.start(Task([(plan.counts_at, counts)]))
        nanoseconds = await self._machine.time_steps(plan)
        ended = nanoseconds[plan.is_dispatch & (counts[:, 0] > 0)].astype(np.int64)
        taken = np.stack([np.zeros_like(ended), ended], axis=1)  # [timed, 2]
        self._machine.start(Task([(ticks.handle, taken)]))

    async def finish_writes(self) -> None:
        self._check()
        await super().finish_writes()
        await self._machine.ask(Task())

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


def usable_threads(cores: int) -> int:
    """Return how many threads leave the machine usable: a core less than there are above two."""
    return cores if cores <= 2 else cores - 1


def _limits(max_memory: int) -> dict[str, int]:
    """Return what kernels for GPUs must respect; here only memory is limited."""
    return {
        "max_buffer_size": max_memory,
        "max_storage_buffer_binding_size": max_memory,
        "max_storage_buffers_per_shader_stage": 64,
        "max_compute_workgroups_per_dimension": 2**31 - 1,
        "max_compute_invocations_per_workgroup": 2**16,
        "max_compute_workgroup_storage_size": 2**20,
        "min_uniform_buffer_offset_alignment": 16,
    }


def _task(plan: Plan | None, counts: np.ndarray | None, writes: Sequence[Write]) -> Task:
    placed = [(write.buffer.handle + write.offset, write.data) for write in writes]
    if isinstance(plan, CpuPlan) and counts is not None:
        return Task([*placed, (plan.counts_at, counts)], plan)
    return Task(placed)
