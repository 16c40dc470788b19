"""The browser's storage: a folder in the origin's private file system.

The browser's names are imported where they are used: a snapshot of Python is made without it.
"""

import asyncio
import re
from contextlib import suppress
from typing import Any

import numpy as np

from py_runtime.base.errors import QuotaError, StorageBusyError, StorageError
from py_runtime.bridge.calls import JsException, address_of, answer_of, bridge
from py_runtime.bridge.cross_origin import find_shared
from py_runtime.bridge.stream import Stream

FOLDER = "inpage-models"
BY_HASH = re.compile(r"file-([0-9a-f]{64})")  # the name of a file whose hash was right
FAULTS: dict[str, type[StorageError]] = {
    "QuotaExceededError": QuotaError,
    "NoModificationAllowedError": StorageBusyError,
}
# A file that was there a moment ago: another tab has moved it to its place, or deleted it.
GONE = FAULTS | {"NotFoundError": StorageBusyError}


_is_off = False


def switch_off() -> None:
    """Stop storing files, and hide those that are stored."""
    global _is_off
    _is_off = True


async def list_stored() -> list[tuple[str, int, float]]:
    """List (name, bytes, milliseconds of the last change) of everything stored."""
    rows = []
    entries = (await _folder()).entries()
    # No `async for`: Pyodide resolves a future of its own for each step. Where that was cancelled,
    # its error stays, and the next answer from JavaScript never reaches the code that awaits it.
    while not (step := await _answer(entries.next())).done:
        name, entry = step.value
        # A file that another tab deletes meanwhile is left out.
        with suppress(StorageError):
            file = await _answer(entry.getFile())
            rows.append((str(name), int(file.size), float(file.lastModified)))
    return rows


async def free_bytes() -> int:
    """Return the bytes that the browser estimates may be added."""
    from js import navigator

    estimate = await _answer(navigator.storage.estimate())
    return int(estimate.quota) - int(estimate.usage)


async def open_stored(name: str) -> Stream:
    """Open a stored file; StorageError if it does not exist."""
    return Stream(bridge.openBlob(await stored_file(name)))


async def open_stored_part(name: str, start: int, end: int) -> Stream:
    """Open a byte range of a stored file."""
    return Stream(bridge.openBlob((await stored_file(name)).slice(start, end)))


async def stored_file(name: str) -> Any:
    """Return a stored file, or the one that all sites share; StorageError if it does not exist."""
    try:
        return await _answer((await _entry(name)).getFile())
    except StorageError:
        named = BY_HASH.fullmatch(name)
        shared = await find_shared(named[1]) if named else None
        if shared is None:
            raise
        return shared


async def changed_at(name: str) -> float:
    """Return the milliseconds of the last change; StorageError if there is no such file."""
    return float((await stored_file(name)).lastModified)


async def size_of(name: str) -> int:
    """Return the bytes of a file; 0 if there is no such file."""
    try:
        return int((await _answer((await _entry(name)).getFile())).size)
    except StorageError:
        return 0


async def create_stored_file(name: str) -> None:
    """Create an empty file unless it exists."""
    await _entry(name, create=True)


async def delete_stored_file(name: str) -> None:
    """Delete a file; StorageError if it does not exist or cannot be deleted."""
    await _answer((await _folder()).removeEntry(name))


class StoredWriter:
    """A file that is being written."""

    def __init__(self, name: str) -> None:
        self._name = name
        # Even a caller who is cancelled at once must wait for the handle, to give it back.
        self._handle = asyncio.ensure_future(self._open())

    async def opened(self) -> None:
        """Raise StorageError if the file cannot be written to: another tab may have it open."""
        await asyncio.shield(self._handle)

    async def write(self, at: int, block: np.ndarray) -> None:
        handle = await asyncio.shield(self._handle)
        try:
            written = bridge.writeFile(handle, at, address_of(block), block.nbytes)
        except JsException as error:
            raise _fault(error) from None
        if written > block.nbytes:  # Chromium's number for a file that is no longer there
            raise StorageBusyError("another tab has taken the file away")
        if written != block.nbytes:
            raise QuotaError(f"{written} of {block.nbytes} bytes could be written")

    async def flush(self) -> None:
        """Flush what was written, so that not even a power failure loses it."""
        try:
            (await asyncio.shield(self._handle)).flush()
        except JsException as error:
            raise _fault(error) from None

    async def close(self) -> None:
        (await asyncio.shield(self._handle)).close()

    async def rename(self, name: str) -> None:
        await _answer(self._entry.move(name), GONE)

    async def _open(self) -> Any:
        if not _is_writable():
            raise StorageError("only a worker can write to it, and this is not one")
        self._entry = await _entry(self._name, create=True)
        return await _answer(self._entry.createSyncAccessHandle(), GONE)


def _is_writable() -> bool:
    """Return whether files can be written; asked before creating one, which would stay behind."""
    import js

    handle: Any = getattr(js, "FileSystemFileHandle", None)
    return hasattr(getattr(handle, "prototype", None), "createSyncAccessHandle")


async def _folder() -> Any:
    from js import navigator

    if _is_off:
        raise StorageError("the page that embeds the engine has switched it off")
    storage: Any = getattr(navigator, "storage", None)
    if getattr(storage, "getDirectory", None) is None:
        raise StorageError("navigator.storage.getDirectory is missing")
    root = await _answer(storage.getDirectory())
    return await _answer(root.getDirectoryHandle(FOLDER, create=True))


async def _entry(name: str, create: bool = False) -> Any:
    return await _answer((await _folder()).getFileHandle(name, create=create))


async def _answer(promise: Any, faults: dict[str, type[StorageError]] = FAULTS) -> Any:
    try:
        return await answer_of(promise)
    except JsException as error:
        raise _fault(error, faults) from None


def _fault(error: Any, faults: dict[str, type[StorageError]] = FAULTS) -> StorageError:
    return faults.get(error.name, StorageError)(f"{error.name}: {error.message}")
