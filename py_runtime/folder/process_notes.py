"""Natively notes are gone with the process; see browser_notes.py for the page's."""

import platform
from typing import Any

_here: dict[str, Any] = {}


def platform_name() -> str:
    """What runs Python: its system and version."""
    return platform.platform()


async def read_note(name: str) -> Any:
    """None where nothing was written."""
    return _here.get(name)


async def write_note(name: str, value: Any) -> None:
    """Any value: it is kept as it is."""
    _here[name] = value
