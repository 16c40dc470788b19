"""Notes of the engine to itself, which this browser keeps beside the models as JSON."""

import json
from typing import Any

import numpy as np

from py_runtime.base.errors import StorageError
from py_runtime.bridge.opfs import open_stored
from py_runtime.bridge.stream import read_first
from py_runtime.folder.browser_storage import NOTE, Storage

MAX_NOTE_BYTES = 4096
_in_memory: dict[str, Any] = {}  # for browsers that keep nothing


def platform_name() -> str:
    """Return the browser with its version: a measurement in one does not hold in another."""
    from js import navigator  # not above: a snapshot is made before there is a browser

    return str(navigator.userAgent)


async def read_note(name: str) -> Any:
    """Read a note; return None if there is none, or if it cannot be read."""
    if name in _in_memory:
        return _in_memory[name]
    try:
        return json.loads(await read_first(await open_stored(NOTE + name), MAX_NOTE_BYTES))
    except (StorageError, ValueError):
        return None


async def write_note(name: str, value: Any) -> None:
    """Write a note; if storage refuses it, it lasts as long as the page."""
    _in_memory[name] = value
    writer = Storage({}).create_partial()
    try:
        await writer.write(np.frombuffer(json.dumps(value).encode(), np.uint8))
        await writer.keep_as(NOTE + name)
    except BaseException as error:
        await writer.drop()
        if not isinstance(error, StorageError):
            raise
