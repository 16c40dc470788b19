"""The choice of a device for a load: by the user's wish, by what there is, or by a measurement.

A GPU computes faster than the CPU, and an adapter that is software slower: neither is measured. In
doubt, since subgroups are as small as software's on an adapter that does not say it is software,
the same product as in graph/tuning.py runs on both for a moment; the result is remembered.
"""

import asyncio

from py_runtime.base.defaults import device_of_environment
from py_runtime.base.errors import GpuError, GpuUnavailableError, RequestError
from py_runtime.devices.one_device import device_in_use
from py_runtime.gpu import CPU, GPU, KINDS, Device, FoundAdapter, find_adapter
from py_runtime.gpu.kernel_target import CPU_KERNELS, candidates, has_small_subgroups
from py_runtime.graph.tuning import (
    CLEARLY,
    LIMIT_SECONDS,
    NOTE,
    Notes,
    check_kernels,
    for_one_token,
    read_note,
    time_products,
)

MAX_THREADS = 256


async def choose_device(
    wanted: str | None = None, threads: int | None = None, notes: Notes | None = None
) -> Device:
    """Return the device that models share: the wanted kind, or the one that is faster here.

    `threads` is for the CPU, and asks for it where no kind is wanted. Without `notes` nothing that
    had to be measured is remembered.
    """
    kind = wanted_kind(wanted, None, threads) or device_of_environment()
    return await device_in_use(kind, threads) if kind else await _faster_device(notes)


async def _faster_device(notes: Notes | None) -> Device:
    """Open the device that is faster here, as far as can be told before a load.

    Where neither can be opened, people hear what the GPU lacks.
    """
    try:
        return await _faster_with(await find_adapter(), notes)
    except GpuUnavailableError as no_gpu:
        try:
            return await device_in_use(CPU)
        except GpuError:
            raise no_gpu from None


async def _faster_with(found: FoundAdapter, notes: Notes | None) -> Device:
    """Open the faster device of a machine that has an adapter."""
    if found.adapter.is_fallback:
        try:
            return await device_in_use(CPU)
        except GpuError:
            return await device_in_use(GPU)
    if not has_small_subgroups(found.adapter, found.features):
        return await device_in_use(GPU)
    note = await read_note(found, notes) if notes else {}
    if note.get("device") in KINDS:
        return await device_in_use(note["device"])
    device = await _measured_device()
    if notes:
        await notes.write_note(NOTE, {**note, "device": device.kind})
    return device


async def _measured_device() -> Device:
    """Return the CPU if it is clearly faster than the GPU; where that cannot be told, the GPU."""
    gpu = await device_in_use(GPU)
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            cpu = await device_in_use(CPU)
            on_gpu, on_cpu = [
                min(await time_products(device, [*for_one_token(candidates(device)).values()]))
                for device in (gpu, cpu)
            ]
    except Exception:  # a driver that fails here must not stop a load that may well succeed
        return gpu
    if on_cpu * CLEARLY >= on_gpu:
        return gpu
    if not gpu.counters.buffers_alive:  # no model was loaded onto it by its kind
        gpu.destroy()
    return cpu


def wanted_kind(device: object, kernels: object, threads: object = None) -> str | None:
    """Return the kind of device that a load asks for, if only by its kernels or its threads.

    RequestError names what cannot be, such as kernels that are of another device.
    """
    check_device(device)
    check_kernels(kernels)
    kind = None if device is None else str(device)
    if kernels is not None:
        kind = CPU if kernels == CPU_KERNELS else GPU
        if device not in (None, kind):
            fault = f"the kernels '{kernels}' do not run on the device '{device}'"
            raise RequestError(fault, "kernels")
    if threads is not None:
        check_threads(threads, kind)
        kind = CPU
    return kind


def check_device(wanted: object) -> None:
    """Raise RequestError unless `wanted` is None or the name of a kind of device."""
    if wanted is not None and wanted not in KINDS:
        names = " or ".join(KINDS)
        raise RequestError(f"device must be {names}, got {wanted!r:.100}", "device")


def check_threads(threads: object, device: object) -> None:
    """Raise RequestError unless the CPU can have so many threads."""
    if device == GPU:
        raise RequestError("threads are for the device 'cpu'", "threads")
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MAX_THREADS:
        fault = f"threads must be from 1 to {MAX_THREADS}, got {threads!r:.100}"
        raise RequestError(fault, "threads")
