"""Calls into JavaScript, in the page, on behalf of test_in_page.py."""

import asyncio
from contextlib import suppress
from typing import Any

import numpy as np

from py_runtime.base.errors import InpageError, StorageBusyError, StorageError
from py_runtime.bridge.locks import SharedLock
from py_runtime.gpu import Device

# What else the bridge has is imported where it is used: outside the page there is no such thing.


async def fault(device: Device, name: str, message: str) -> list[str]:
    """Return the kind and the text of such an exception of JavaScript's."""
    from js import DOMException, Promise

    from py_runtime.bridge.calls import answer_of

    try:
        await answer_of(Promise.reject(DOMException.new(message, name)), sources={"toy": "a\nb"})
    except Exception as error:
        return [type(error).__name__, str(error)]
    return []


async def late_answers(device: Device) -> list[str]:
    """Return what is taken back when nobody waits for it any more."""
    from py_runtime.bridge.calls import answer_of

    undone: list[str] = []
    promise = asyncio.get_running_loop().create_future()
    asking = asyncio.ensure_future(answer_of(promise, undone.append))
    await asyncio.sleep(0)
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    promise.set_result("an answer")
    for _ in range(10):
        await asyncio.sleep(0)
    return undone


async def after_a_listing_was_broken_off(device: Device) -> str:
    """Return JavaScript's answer once a folder has listed its next entry, and nobody listens."""
    from js import Object, Promise, Reflect, Symbol
    from pyodide.ffi import create_proxy, to_js

    from py_runtime.bridge import opfs
    from py_runtime.bridge.calls import answer_of

    entry, entries, folder = Promise.withResolvers(), Object.new(), Object.new()
    entries.next = create_proxy(lambda *_: entry.promise)
    Reflect.set(entries, Symbol.asyncIterator, create_proxy(lambda: entries))
    folder.entries = create_proxy(lambda: entries)

    async def slow_folder() -> Any:
        return folder

    own_folder, opfs._folder = opfs._folder, slow_folder
    try:
        listing = asyncio.ensure_future(opfs.list_stored())
        await asyncio.sleep(0.05)
        listing.cancel()
        await asyncio.wait([listing])
        assert listing.cancelled(), listing
    finally:
        opfs._folder = own_folder
    entry.resolve(Object.fromEntries(to_js([["done", False], ["value", "an entry"]])))
    return str(await asyncio.wait_for(answer_of(Promise.resolve("an answer")), 10))


async def streamed(device: Device, url: str, memory_bytes: int) -> dict[str, Any]:
    """Stream a file block by block, and its first ten bytes."""
    from py_runtime.bridge.stream import open_url, read_first

    memory, blocks = np.empty(memory_bytes, np.uint8), []
    with open_url(url) as stream:
        headers = await stream.headers()
        while len(block := await stream.next_block(memory)):
            blocks.append(block.copy())
    first = await read_first(open_url(url), 10)
    return {
        "type": headers["content-type"],
        "sizes": [len(block) for block in blocks],
        "whole": np.concatenate(blocks),
        "first": np.frombuffer(first, np.uint8),
    }


async def missing(device: Device, url: str) -> list[str]:
    from py_runtime.bridge.stream import open_url, read_first

    try:
        await read_first(open_url(url), 10)
    except InpageError as error:
        return [type(error).__name__, str(error)]
    return []


async def stored(device: Device, data: np.ndarray) -> dict[str, Any]:
    """Store a file of two writes.

    Look while it is written, once it is there, and when it is gone.
    """
    from py_runtime.bridge import opfs
    from py_runtime.bridge.stream import read_first

    found: dict[str, Any] = {}
    writer = opfs.StoredWriter("test-begun")
    await writer.write(0, data[:5].copy())
    await writer.write(5, data[5:].copy())
    try:
        await opfs.StoredWriter("test-begun").opened()
    except StorageBusyError:
        found["busy"] = True
    await writer.flush()
    await writer.close()
    await writer.rename("test-kept")
    found["sizes"] = [await opfs.size_of(name) for name in ("test-begun", "test-kept")]
    found["listed"] = [[name, size] for name, size, _ in await opfs.list_stored()]
    whole = await read_first(await opfs.open_stored("test-kept"), 100)
    part = await read_first(await opfs.open_stored_part("test-kept", 3, 9), 100)
    found["whole"], found["part"] = list(whole), list(part)
    await opfs.delete_stored_file("test-kept")
    try:
        await opfs.open_stored("test-kept")
    except StorageError as error:
        found["gone"] = str(error)
    return found


async def locked(device: Device) -> list[str]:
    """Return the order of events when one has the lock, one gives up, and one waits."""
    told: list[str] = []
    first, second, third = SharedLock("test"), SharedLock("test"), SharedLock("test")

    async def wait_for(lock: SharedLock, name: str) -> None:
        await lock.acquire()
        told.append(f"{name} has it")

    await wait_for(first, "the first")
    giving_up = asyncio.ensure_future(wait_for(second, "the second"))
    waiting = asyncio.ensure_future(wait_for(third, "the third"))
    while await pending_locks("test") < 2:
        pass
    giving_up.cancel()
    told.append("the first leaves")
    first.release()
    await waiting
    third.release()
    return told


async def pending_locks(name: str) -> int:
    from js import navigator

    asked = await navigator.locks.query()
    return len([lock for lock in asked.pending if lock.name == name])
