"""The memory of a browser's page, from Linux's /proc; standard library only."""

import re
from pathlib import Path

PROC = Path("/proc")


def renderer_bytes(profile: Path) -> int | None:
    """Return what the renderers of the browser with this profile hold; None if it is unknown.

    That is JavaScript's heaps, WebAssembly's memories, workers and all. Shared pages count by
    share.
    """
    try:
        commands = {int(folder.name): command_of(folder) for folder in PROC.glob("[0-9]*")}
        parents = {number: parent_of(number) for number in commands}
    except OSError:
        return None
    roots = {number for number, command in commands.items() if str(profile) in command}
    held = [
        proportional_bytes(number)
        for number, command in commands.items()
        if "--type=renderer" in command and has_ancestor(number, roots, parents)
    ]
    return sum(held) or None


def has_ancestor(number: int, roots: set[int], parents: dict[int, int]) -> bool:
    """Return whether one of the roots started it, directly or through others."""
    while number:
        if number in roots:
            return True
        number = parents.get(number, 0)
    return False


def command_of(folder: Path) -> str:
    """Return the command line of a process; "" once it has ended."""
    try:
        return (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:  # it has ended
        return ""


def parent_of(number: int) -> int:
    """Return the number of the process that started it; 0 once it has ended."""
    try:
        # The name before it, in parentheses, may hold anything.
        status = (PROC / str(number) / "stat").read_text(errors="replace").rpartition(")")[2]
        return int(status.split()[1])
    except OSError:
        return 0


def proportional_bytes(number: int) -> int:
    """Return a process's memory, where shared pages count in part (PSS); 0 if it cannot be read."""
    try:
        rollup = (PROC / str(number) / "smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0
