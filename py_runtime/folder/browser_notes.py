"""Small notes to ourselves that this browser keeps beside the models, as JSON."""

import json
from typing import Any

import numpy as np

from py_runtime.base.errors import StorageError
from py_runtime.bridge.opfs import open_stored
from py_runtime.bridge.stream import read_first
from py_runtime.folder.browser_storage import NOTE, Storage

MAX_NOTE_BYTES = 4096
_here: dict[str, Any] = {}  # for browsers that keep nothing


def platform_name() -> str:
    """The browser with its version: what was measured in another one does not hold."""
    from js import navigator  # not above: a snapshot is made before there is a browser

    return str(navigator.userAgent)


async def read_note(name: str) -> Any:
    """None where there is none, or it cannot be read."""
    if name in _here:
        return _here[name]
    try:
        return json.loads(await read_first(await open_stored(NOTE + name), MAX_NOTE_BYTES))
    except (StorageError, ValueError):
        return None


async def write_note(name: str, value: Any) -> None:
    """Where storage refuses it, the note lasts as long as the page."""
    _here[name] = value
    writer = Storage({}).create()
    try:
        await writer.write(np.frombuffer(json.dumps(value).encode(), np.uint8))
        await writer.keep_as(NOTE + name)
    except BaseException as error:
        await writer.drop()
        if not isinstance(error, StorageError):
            raise
