"""The devices that all models share, one of a kind: opened once, replaced once for all when lost.

A page has one GPU device at a time: opening a second would take the first one away.
"""

import asyncio
import weakref

from py_runtime.base import notices
from py_runtime.base.errors import RequestError
from py_runtime.base.messages import message
from py_runtime.cpu import request_cpu
from py_runtime.gpu import CPU, Device, request_device

_in_use: "dict[str, weakref.ref[Device]]" = {}  # by kind; given back as soon as nothing is on it
_being_opened: "dict[str, asyncio.Future[Device]]" = {}


async def device_in_use(kind: str, threads: int | None = None) -> Device:
    """Return the device that models were loaded onto before, or open a new one of that kind.

    `threads` is for the CPU: None stands for as many as suit the machine, or are in use.
    """
    known = _in_use.get(kind)
    device = known() if known else None
    if device is not None:
        device = newest(device)
    if device is None or device.kind != kind:  # it may have been replaced by another kind
        device = await _opened(kind, threads)
    if threads not in (None, device.threads):
        if device.counters.buffers_alive:
            raise RequestError(
                f"models share the CPU, which already runs {device.threads} threads: unload them "
                "before loading one with another number of threads",
                "threads",
            )
        device.destroy()
        device = await _opened(kind, threads, device)
    _in_use[kind] = weakref.ref(device)
    return device


async def replacement(lost: Device, by_cpu: bool = False) -> Device:
    """Return the replacement for a lost device: the same one for everybody who was on it.

    It is of the same kind, unless the GPU was given up: then it is the CPU.
    """
    device = newest(lost)
    if device is lost:
        kind = CPU if by_cpu else lost.kind
        device = lost.replaced_by = await _opened(kind, lost.threads, lost)
    _in_use[device.kind] = weakref.ref(device)
    return device


def newest(device: Device) -> Device:
    """Return the device, or the one that has replaced it since."""
    while device.replaced_by is not None:
        device = device.replaced_by
    return device


async def _opened(kind: str, threads: int | None, lost: Device | None = None) -> Device:
    """Open a device for all who ask meanwhile; cancelling one caller cancels no other."""
    being_opened = _being_opened.get(kind)
    if being_opened is None or being_opened.done():
        being_opened = asyncio.ensure_future(_request(kind, threads, lost))
        _being_opened[kind] = being_opened
    return await asyncio.shield(being_opened)


async def _request(kind: str, threads: int | None, lost: Device | None) -> Device:
    """Request a device and record it before waiters wake; a caller that asks first sees it."""
    device = await (request_cpu(threads) if kind == CPU else request_device())
    _in_use[kind] = weakref.ref(device)
    if lost is not None:
        lost.replaced_by = device
        if lost.kind != kind:
            notices.post("moved", message("moved_to_processor", threads=device.threads))
    return device
