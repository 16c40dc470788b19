"""Notes that natively last as long as the process; browser_notes.py has the page's."""

import platform
from typing import Any

_in_memory: dict[str, Any] = {}


def platform_name() -> str:
    """Return the system that Python runs on, with its version."""
    return platform.platform()


async def read_note(name: str) -> Any:
    """Read a note; return None if there is none."""
    return _in_memory.get(name)


async def write_note(name: str, value: Any) -> None:
    """Write a note, of any value."""
    _in_memory[name] = value
