"""The one device that all models share: opened once, and replaced once for all when it is lost.

A page has one device at a time: opening a second would take the first one away.
"""

import asyncio
import weakref

from py_runtime.gpu import Device, request_device

_in_use: "weakref.ref[Device] | None" = None  # given back as soon as nothing is on it
_device_being_opened: "asyncio.Future[Device] | None" = None


async def device_in_use() -> Device:
    """Return the device that models were loaded onto before, or open a new one."""
    global _in_use
    device = _in_use() if _in_use else None
    device = newest(device) if device else await _opened()
    _in_use = weakref.ref(device)
    return device


async def replacement(lost: Device) -> Device:
    """Return the replacement for a lost device: the same one for everybody who was on it."""
    global _in_use
    device = newest(lost)
    if device is lost:
        device = lost.replaced_by = await _opened(lost)
    _in_use = weakref.ref(device)
    return device


def newest(device: Device) -> Device:
    """Return the device, or the one that has replaced it since."""
    while device.replaced_by is not None:
        device = device.replaced_by
    return device


async def _opened(lost: Device | None = None) -> Device:
    """Open a device for all who ask meanwhile; cancelling one caller cancels no other."""
    global _device_being_opened
    device_being_opened = _device_being_opened
    if device_being_opened is None or device_being_opened.done():
        device_being_opened = _device_being_opened = asyncio.ensure_future(_request(lost))
    return await asyncio.shield(device_being_opened)


async def _request(lost: Device | None) -> Device:
    """Request a device and record it before waiters wake; a caller that asks first sees it."""
    global _in_use
    device = await request_device()
    _in_use = weakref.ref(device)
    if lost is not None:
        lost.replaced_by = device
    return device
