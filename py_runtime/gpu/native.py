"""The device interface over wgpu-py, for tests, tools and the terminal."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import wgpu
from wgpu.backends.wgpu_native import lib

from py_runtime.base.errors import (
    GpuDeviceLostError,
    GpuError,
    GpuOutOfMemoryError,
    GpuUnavailableError,
    GpuValidationError,
    ShaderError,
    ShaderMessage,
)
from py_runtime.gpu.interface import OPTIONAL_FEATURES, Device
from py_runtime.gpu.objects import (
    AdapterInfo,
    BindGroup,
    BindGroupSpec,
    Buffer,
    BufferSpec,
    BufferUsage,
    Copy,
    Dispatch,
    FoundAdapter,
    Pipeline,
    PipelineSpec,
    Plan,
    PlanStep,
    Read,
    Write,
    padded_size,
    whole_words,
)

# wgpu-py calls the feature by another name than WebGPU does.
NATIVE_FEATURE_NAMES = {"subgroups": "subgroup"}
# naga has the subgroup built-ins but refuses the directive that WebGPU asks for.
SUBGROUP_DIRECTIVE = re.compile(r"^enable subgroups;", re.MULTILINE)
SHADER_MESSAGE = re.compile(r"error: (?P<text>[^\n]*)\n\s*┌─ wgsl:(?P<line>\d+):(?P<column>\d+)")


async def find_adapter() -> FoundAdapter:
    """Look at the strongest adapter without opening it."""
    adapter = _strongest_adapter()
    return FoundAdapter(_adapter_info(adapter), frozenset(_features(adapter)))


async def request_device() -> "NativeDevice":
    """Open the strongest adapter with its own limits and the optional features it has."""
    adapter = _strongest_adapter()
    features = _features(adapter)
    device = adapter.request_device_sync(
        label="inpage",
        required_features=[NATIVE_FEATURE_NAMES.get(name, name) for name in features],
        required_limits=adapter.limits,
    )
    return NativeDevice(
        adapter=_adapter_info(adapter),
        features=frozenset(features),
        limits={name.replace("-", "_"): value for name, value in device.limits.items()},
        wgpu_device=device,
    )


def _strongest_adapter() -> Any:
    try:
        return wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except RuntimeError as error:
        raise GpuUnavailableError(
            f"no GPU adapter: {error}; install a Vulkan, Metal or DX12 driver (a software one such "
            "as Mesa's lavapipe will do)"
        ) from error


def _features(adapter: Any) -> list[str]:
    return [
        name
        for name in OPTIONAL_FEATURES
        if NATIVE_FEATURE_NAMES.get(name, name) in adapter.features
    ]


def _adapter_info(adapter: Any) -> AdapterInfo:
    info = adapter.info
    return AdapterInfo(
        vendor=info["vendor"],
        architecture=info["architecture"],
        device=info["device"],
        description=info["description"],
        is_fallback=info["adapter_type"] == "CPU",
        # wgpu-py reports the subgroup sizes under a misspelt key.
        subgroup_min_size=info.get("stackgroup_min_size", 0),
        subgroup_max_size=info.get("stackgroup_max_size", 0),
    )


class NativeDevice(Device):
    """A device over wgpu-py: handles are wgpu's own objects, and its errors become ours."""

    def __init__(
        self,
        adapter: AdapterInfo,
        features: frozenset[str],
        limits: dict[str, int],
        wgpu_device: Any,
    ) -> None:
        super().__init__(adapter, features, limits)
        self._device = wgpu_device
        self._queue = wgpu_device.queue
        self._destroyed = False
        # wgpu-py itself has no call for it: WebGPU's timestamps are nanoseconds, these are ticks.
        self.nanoseconds_per_tick = lib.wgpuQueueGetTimestampPeriod(self._queue._internal)

    async def _create_buffers(self, specs: Sequence[BufferSpec]) -> list[Buffer]:
        return self._buffers(specs)

    def _buffers(self, specs: Sequence[BufferSpec]) -> list[Buffer]:
        buffers: list[Buffer] = []
        for spec in specs:
            try:
                with self._faults(f"buffer '{spec.label}' ({spec.size} bytes)"):
                    handle = self._device.create_buffer(
                        label=spec.label, size=spec.size, usage=int(spec.usage)
                    )
            except GpuError:
                self._destroy_buffers(buffers)
                raise
            buffers.append(Buffer(spec.label, handle, spec.size, spec.usage))
        return buffers

    async def _create_compute_pipelines(self, specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        return [self._create_pipeline(spec) for spec in specs]

    def _create_pipeline(self, spec: PipelineSpec) -> Pipeline:
        source = SUBGROUP_DIRECTIVE.sub("", spec.source)
        try:
            with self._faults(f"shader '{spec.label}'"):
                module = self._device.create_shader_module(label=spec.label, code=source)
        except GpuValidationError as error:
            raise ShaderError(spec.label, spec.source, _shader_messages(str(error))) from error
        with self._faults(f"pipeline '{spec.label}'"):
            handle = self._device.create_compute_pipeline(
                label=spec.label,
                layout="auto",
                compute={
                    "module": module,
                    "entry_point": spec.entry_point,
                    "constants": dict(spec.constants),
                },
            )
        return Pipeline(spec.label, handle)

    async def _create_bind_groups(self, specs: Sequence[BindGroupSpec]) -> list[BindGroup]:
        groups = []
        for spec in specs:
            entries = [
                {
                    "binding": number,
                    "resource": {
                        "buffer": binding.buffer.handle,
                        "offset": binding.offset,
                        "size": binding.size or binding.buffer.size - binding.offset,
                    },
                }
                for number, binding in enumerate(spec.bindings)
            ]
            with self._faults(f"bind group '{spec.label}'"):
                layout = spec.pipeline.handle.get_bind_group_layout(0)
                handle = self._device.create_bind_group(
                    label=spec.label, layout=layout, entries=entries
                )
            groups.append(BindGroup(spec.label, handle))
        return groups

    def create_plan(self, label: str, steps: Sequence[PlanStep]) -> Plan:
        return Plan(label, steps)

    def _submit(
        self, plan: Plan | None, counts: np.ndarray | None, writes: Sequence[Write]
    ) -> None:
        self._submit_with_staging(plan, counts, writes, (), ())

    def _submit_to_read(
        self,
        plan: Plan | None,
        counts: np.ndarray | None,
        writes: Sequence[Write],
        reads: Sequence[Read],
        repeat: int,
    ) -> "asyncio.Future[list[np.ndarray]]":
        """Submit at once, because later work relies on it, and read when the result is awaited.

        Reading blocks until the GPU is done.
        """
        try:
            staging = self._buffers(
                [
                    BufferSpec(
                        f"staging of {read.buffer.label}",
                        padded_size(read.nbytes),
                        BufferUsage.MAP_READ | BufferUsage.COPY_DST,
                    )
                    for read in reads
                ]
            )
            self._submit_with_staging(plan, counts, writes, reads, staging, repeat)
        except GpuError as error:
            failed: asyncio.Future[list[np.ndarray]] = asyncio.get_running_loop().create_future()
            failed.set_exception(error)
            return failed
        return asyncio.ensure_future(self._read(staging, reads))

    async def _read(self, staging: Sequence[Buffer], reads: Sequence[Read]) -> list[np.ndarray]:
        try:
            return [
                self._map(buffer, read.nbytes) for buffer, read in zip(staging, reads, strict=True)
            ]
        finally:
            self._destroy_buffers(staging)

    def _submit_with_staging(
        self,
        plan: Plan | None,
        counts: np.ndarray | None,
        writes: Sequence[Write],
        reads: Sequence[Read],
        staging: Sequence[Buffer],
        repeat: int = 1,
    ) -> None:
        with self._faults(f"submit of '{plan.label if plan else 'uploads and read-backs'}'"):
            for write in writes:
                data = whole_words(write.data)
                self._queue.write_buffer(write.buffer.handle, write.offset, data)
            if plan is None and not reads:
                return
            encoder = self._device.create_command_encoder(label=plan.label if plan else "reads")
            if plan is not None and counts is not None:
                for _ in range(repeat):
                    _encode_steps(encoder, plan, counts)
            for read, buffer in zip(reads, staging, strict=True):
                encoder.copy_buffer_to_buffer(
                    read.buffer.handle, read.offset, buffer.handle, 0, buffer.size
                )
            self._queue.submit([encoder.finish()])

    async def _submit_timed(
        self, plan: Plan, counts: np.ndarray, timed: int, ticks: Buffer
    ) -> None:
        with self._faults(f"timed submit of '{plan.label}'"):
            encoder = self._device.create_command_encoder(label=plan.label)
            queries = self._device.create_query_set(type="timestamp", count=2 * timed)
            _encode_steps(encoder, plan, counts, queries)
            encoder.resolve_query_set(queries, 0, 2 * timed, ticks.handle, 0)
            self._queue.submit([encoder.finish()])

    def _map(self, staging: Buffer, nbytes: int) -> np.ndarray:
        with self._faults(f"read-back through '{staging.label}'"):
            staging.handle.map_sync("READ")
            data = np.frombuffer(staging.handle.read_mapped(0, staging.size), np.uint8, nbytes)
            staging.handle.unmap()
        return data.copy()

    def _destroy_buffers(self, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            buffer.handle.destroy()

    def release(self, objects: Sequence[BindGroup | Plan]) -> None:
        """Drop the references; wgpu-py frees what nothing refers to any more."""

    def destroy(self) -> None:
        self._destroyed = True
        self._device.destroy()

    @contextmanager
    def _faults(self, action: str) -> Iterator[None]:
        """Turn wgpu-py's exceptions into ours, naming what was being done."""
        if self._destroyed:
            raise GpuDeviceLostError(f"{action}: the device was destroyed; request a new one")
        try:
            yield
        except wgpu.GPUOutOfMemoryError as error:
            raise GpuOutOfMemoryError(f"{action}: not enough GPU memory: {error}") from error
        except wgpu.GPUError as error:
            if "Not enough memory left" in str(error):  # wgpu-native files it under validation
                raise GpuOutOfMemoryError(f"{action}: not enough GPU memory") from error
            raise GpuValidationError(f"{action}: {error}") from error


def _encode_steps(encoder: Any, plan: Plan, counts: np.ndarray, queries: Any = None) -> None:
    """Encode one compute pass for each run of dispatches; WebGPU orders the dispatches inside it.

    With `queries`, encode one pass for each dispatch, between two timestamps.
    """
    compute_pass = None
    timed = 0
    for step, (first, second, third) in zip(plan.steps, counts.tolist(), strict=True):
        if isinstance(step, Dispatch):
            if first == 0:
                continue
            if compute_pass is None:
                compute_pass = encoder.begin_compute_pass(
                    label=plan.label, timestamp_writes=queries and _timestamps(queries, timed)
                )
            compute_pass.set_pipeline(step.pipeline.handle)
            compute_pass.set_bind_group(0, step.bind_group.handle)
            compute_pass.dispatch_workgroups(first, second, third)
            if queries:
                compute_pass.end()
                compute_pass = None
                timed += 1
        elif third:
            if compute_pass is not None:
                compute_pass.end()
                compute_pass = None
            _encode_copy(encoder, step, first, second, third)
    if compute_pass is not None:
        compute_pass.end()


def _timestamps(queries: Any, number: int) -> dict[str, Any]:
    return {
        "query_set": queries,
        "beginning_of_pass_write_index": 2 * number,
        "end_of_pass_write_index": 2 * number + 1,
    }


def _encode_copy(
    encoder: Any, step: Copy, source_at: int, destination_at: int, nbytes: int
) -> None:
    encoder.copy_buffer_to_buffer(
        step.source.handle, source_at, step.destination.handle, destination_at, nbytes
    )


def _shader_messages(text: str) -> list[ShaderMessage]:
    found = [
        ShaderMessage(int(match["line"]), int(match["column"]), match["text"])
        for match in SHADER_MESSAGE.finditer(text)
    ]
    return found or [ShaderMessage(0, 0, text.strip())]
