"""The device interface of the engine: what both implementations (page, native) offer, and no more.

Names follow wgpu-py. Creation goes in batches, because a page pays for each await: one call creates
many labelled objects, each inside its own error scopes, and either all of them exist afterwards or
none does. The hot path is `Plan`: a recorded list of dispatches and copies, replayed by one call.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from py_runtime.base.defaults import GPU
from py_runtime.base.errors import GpuUnavailableError, GpuValidationError
from py_runtime.gpu.objects import (
    TICKS_USAGE,
    AdapterInfo,
    BindGroup,
    BindGroupSpec,
    Buffer,
    BufferSpec,
    Counters,
    Pipeline,
    PipelineSpec,
    Plan,
    PlanStep,
    Read,
    Write,
    padded_size,
)

TIMESTAMPS = "timestamp-query"
SUBGROUP_MATRICES = "chromium-experimental-subgroup-matrix"
OPTIONAL_FEATURES = ("subgroups", "shader-f16", SUBGROUP_MATRICES, TIMESTAMPS)
MAX_TIMED = 2048  # dispatches of one submit: each takes two of the 4096 places WebGPU allows


@dataclass(repr=False)
class Device(ABC):
    """The device as the engine sees it; subclasses implement the underscored methods."""

    kind: ClassVar[str] = GPU  # one of KINDS

    adapter: AdapterInfo
    features: frozenset[str]
    limits: dict[str, int]  # snake_case WebGPU names
    nanoseconds_per_tick: float = field(default=1.0, init=False)  # of its timestamps
    counters: Counters = field(default_factory=Counters, init=False)
    # All that is on it, with whose it is.
    owners: dict[Buffer, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    # After it was lost, as one_device.py has it.
    replaced_by: "Device | None" = field(default=None, init=False, repr=False, compare=False)
    _pipelines: dict[PipelineSpec, Pipeline] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        name = self.adapter.description or self.adapter.vendor
        return f"Device({self.kind!r}, {name!r})"

    @property
    def threads(self) -> int | None:
        """Return how many threads compute, or None of a GPU."""
        return None

    @property
    def bytes_left(self) -> int | None:
        """Return how much can still be allocated, or None of a GPU, which does not tell."""
        return None

    # Creation: batches, asynchronous, all or nothing -------------------------------------------

    async def create_buffers(self, specs: Sequence[BufferSpec], owner: str = "") -> list[Buffer]:
        for spec in specs:
            if not spec.label:
                raise GpuValidationError("every GPU buffer needs a label")
            if not 0 < spec.size <= self.limits["max_buffer_size"]:
                raise GpuValidationError(
                    f"buffer '{spec.label}' wants {spec.size} bytes; this device allows 1 to "
                    f"{self.limits['max_buffer_size']}"
                )
        sized = [BufferSpec(s.label, padded_size(s.size), s.usage) for s in specs]
        buffers = await self._create_buffers(sized) if sized else []
        self.owners.update(dict.fromkeys(buffers, owner))
        self.counters.buffers_alive += len(buffers)
        self.counters.buffer_bytes_alive += sum(buffer.size for buffer in buffers)
        return buffers

    async def create_compute_pipelines(self, specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        """Compile the specs that are not compiled yet, all at once; equal ones share a pipeline."""
        missing = [spec for spec in dict.fromkeys(specs) if spec not in self._pipelines]
        if missing:
            created = await self._create_compute_pipelines(missing)
            self._pipelines.update(zip(missing, created, strict=True))
        return [self._pipelines[spec] for spec in specs]

    async def create_bind_groups(self, specs: Sequence[BindGroupSpec]) -> list[BindGroup]:
        return await self._create_bind_groups(specs) if specs else []

    @abstractmethod
    def create_plan(self, label: str, steps: Sequence[PlanStep]) -> Plan: ...

    # Work --------------------------------------------------------------------------------------

    def write_buffer(self, buffer: Buffer, data: np.ndarray, offset: int = 0) -> None:
        self.submit(None, None, [Write(buffer, data, offset)])

    async def read_buffer(self, buffer: Buffer, nbytes: int, offset: int = 0) -> np.ndarray:
        """Return the bytes as a new uint8 array; the caller views it as the dtype it knows."""
        return (await self.submit_and_read(None, None, [], [Read(buffer, nbytes, offset)]))[0]

    def submit(
        self, plan: Plan | None, counts: np.ndarray | None, writes: Sequence[Write] = ()
    ) -> None:
        """Upload, then replay the plan: one call across the bridge, nothing awaited."""
        self._count(plan, counts, writes, (), 1)
        self._submit(plan, counts, writes)

    async def submit_and_read(
        self,
        plan: Plan | None,
        counts: np.ndarray | None,
        writes: Sequence[Write],
        reads: Sequence[Read],
        repeat: int = 1,
    ) -> list[np.ndarray]:
        """Upload, replay the plan `repeat` times, and return each read as uint8: one await."""
        return await self.submit_to_read(plan, counts, writes, reads, repeat)

    def submit_to_read(
        self,
        plan: Plan | None,
        counts: np.ndarray | None,
        writes: Sequence[Write],
        reads: Sequence[Read],
        repeat: int = 1,
    ) -> "asyncio.Future[list[np.ndarray]]":
        """Start `submit_and_read` at once and return an awaitable for the bytes."""
        self._count(plan, counts, writes, reads, repeat)
        return self._submit_to_read(plan, counts, writes, reads, repeat)

    async def time_steps(self, plan: Plan, counts: np.ndarray) -> np.ndarray:
        """Replay the plan once and return the GPU nanoseconds of each step: float64 [steps].

        Every dispatch runs in its own pass, between two timestamps. Copies are not timed.
        """
        if TIMESTAMPS not in self.features:
            raise GpuUnavailableError(
                "the time of single ops cannot be measured: this browser or GPU has no timestamp "
                f"queries (the WebGPU feature '{TIMESTAMPS}')"
            )
        plan.check_counts(counts)
        nanoseconds = np.zeros(len(plan.steps))
        live = np.flatnonzero(plan.is_dispatch & (counts[:, 0] > 0))
        (ticks,) = await self.create_buffers(
            [BufferSpec(f"timestamps of {plan.label}", 16 * MAX_TIMED, TICKS_USAGE)]
        )
        begin = 0
        try:
            for first in range(0, len(live), MAX_TIMED):
                timed = live[first : first + MAX_TIMED]
                end = int(timed[-1]) + 1
                part = np.zeros_like(counts)
                part[begin:end] = counts[begin:end]
                self._count(plan, part, (), (), 1)
                await self._submit_timed(plan, part, len(timed), ticks)
                data = await self.read_buffer(ticks, 16 * len(timed))
                began, ended = data.view(np.int64).reshape(-1, 2).T
                nanoseconds[timed] = np.maximum(ended - began, 0) * self.nanoseconds_per_tick
                begin = end
        finally:
            self.destroy_buffers([ticks])
        rest = np.zeros_like(counts)
        rest[begin:] = counts[begin:]  # copies behind the last dispatch
        self.submit(plan, rest)
        return nanoseconds

    # Release -----------------------------------------------------------------------------------

    def destroy_buffers(self, buffers: Sequence[Buffer]) -> None:
        """Free the memory at once; using the buffers afterwards is an error."""
        for buffer in buffers:
            self.owners.pop(buffer, None)
        self.counters.buffers_alive -= len(buffers)
        self.counters.buffer_bytes_alive -= sum(buffer.size for buffer in buffers)
        self._destroy_buffers(buffers)

    async def finish_writes(self) -> None:
        """Wait until the GPU has taken every upload, so that uploads do not pile up."""
        await asyncio.sleep(0)  # natively it takes them at once

    @abstractmethod
    def release(self, objects: Sequence[BindGroup | Plan]) -> None:
        """Drop objects that refer to buffers; pipelines stay cached for the life of the device."""

    @abstractmethod
    def destroy(self) -> None:
        """End the device: every later call raises GpuDeviceLostError."""

    # What an implementation writes -------------------------------------------------------------

    @abstractmethod
    async def _create_buffers(self, specs: Sequence[BufferSpec]) -> list[Buffer]: ...

    @abstractmethod
    async def _create_compute_pipelines(self, specs: Sequence[PipelineSpec]) -> list[Pipeline]: ...

    @abstractmethod
    async def _create_bind_groups(self, specs: Sequence[BindGroupSpec]) -> list[BindGroup]: ...

    @abstractmethod
    def _submit(
        self, plan: Plan | None, counts: np.ndarray | None, writes: Sequence[Write]
    ) -> None: ...

    @abstractmethod
    def _submit_to_read(
        self,
        plan: Plan | None,
        counts: np.ndarray | None,
        writes: Sequence[Write],
        reads: Sequence[Read],
        repeat: int,
    ) -> "asyncio.Future[list[np.ndarray]]": ...

    @abstractmethod
    async def _submit_timed(
        self, plan: Plan, counts: np.ndarray, timed: int, ticks: Buffer
    ) -> None:
        """Replay the plan and leave the begin and end of each dispatch in `ticks` as u64."""

    @abstractmethod
    def _destroy_buffers(self, buffers: Sequence[Buffer]) -> None: ...

    def _count(
        self,
        plan: Plan | None,
        counts: np.ndarray | None,
        writes: Sequence[Write],
        reads: Sequence[Read],
        repeat: int,
    ) -> None:
        for write in writes:
            if not write.data.flags.c_contiguous:
                raise GpuValidationError(
                    f"upload to '{write.buffer.label}' needs a C-contiguous array"
                )
            _check_range("upload to", write.buffer, write.offset, write.data.nbytes)
            self.counters.bytes_written += write.data.nbytes
        for read in reads:
            _check_range("read-back of", read.buffer, read.offset, read.nbytes)
            self.counters.bytes_read += read.nbytes
        self.counters.writes += len(writes)
        self.counters.reads += len(reads)
        if plan is not None:
            assert counts is not None, "a plan is replayed with its counts"
            plan.check_counts(counts)
            self.counters.submits += 1
            dispatches = int(np.count_nonzero(counts[plan.is_dispatch, 0]))
            self.counters.dispatches += repeat * dispatches


def _check_range(action: str, buffer: Buffer, offset: int, nbytes: int) -> None:
    if offset < 0 or offset % 4 or offset + nbytes > buffer.size:
        raise GpuValidationError(
            f"{action} '{buffer.label}': {nbytes} bytes at offset {offset} do not fit its "
            f"{buffer.size} bytes (offsets are multiples of 4)"
        )
