"""Storage that the sites of a browser share, by the SHA-256 of what a file holds.

It is Cross-Origin Storage, a draft (https://wicg.github.io/cross-origin-storage/) that few browsers
offer. One that does may ask its user, checks the hash of what is stored, and may clear it at any
time.
"""

import json
from typing import Any

from py_runtime.bridge.calls import JsException

EVERY_SITE = "*"


def is_offered() -> bool:
    """Return whether this browser has it, for the thread that asks."""
    return _storage() is not None


async def find_shared(sha256: str) -> Any:
    """Return the file with this hash; None where there is none, or the user allows none."""
    if not is_offered():
        return None
    try:
        handle = await _storage().requestFileHandle(_hash(sha256))
        return await handle.getFile()
    except JsException:
        return None


async def share(sha256: str, file: Any) -> bool:
    """Store a file for all sites; return whether it can be read from there."""
    if not is_offered():
        return False
    try:
        options = {"create": True, "origins": EVERY_SITE}
        handle = await _storage().requestFileHandle(_hash(sha256), **options)
        writing = await handle.createWritable()
        await writing.write(file)
        await writing.close()
    except JsException:
        return False
    found = await find_shared(sha256)
    return found is not None and int(found.size) == int(file.size)


def _storage() -> Any:
    from js import navigator  # not above: a snapshot is made before there is a page

    return getattr(navigator, "crossOriginStorage", None)


def _hash(sha256: str) -> Any:
    from js import JSON

    return JSON.parse(json.dumps({"algorithm": "SHA-256", "value": sha256}))
