"""Natively notes are gone with the process; see browser_notes.py for the page's."""

import platform
from typing import Any

_here: dict[str, Any] = {}


def browser_name() -> str:
    """There is none: what runs Python stands in its place."""
    return platform.platform()


async def read_note(name: str) -> Any:
    return _here.get(name)


async def write_note(name: str, value: Any) -> None:
    _here[name] = value
