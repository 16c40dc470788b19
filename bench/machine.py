"""The place and time of a bench run. Standard library only."""

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

PROCESSORS = {"amd64": "x86-64", "x86_64": "x86-64", "aarch64": "arm64"}


def today() -> str:
    """Return the date and time in UTC, as the table's heading states it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def describe(adapter: dict[str, Any]) -> dict[str, Any]:
    """`adapter` is what the probe page found."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "browser": adapter.pop("browser"),
        "adapter": adapter,
    }


def kind_of(system: str) -> str:
    """Return the kind of processor of a system such as "Linux x86_64"."""
    processor = system.split()[-1].lower()
    return PROCESSORS.get(processor, processor)


def results_path(folder: Path) -> Path:
    """Return the file in which runs on this kind of processor leave their results."""
    return folder / f"results-{kind_of(platform.machine())}.json"


def cpu_name() -> str:
    """Return the processor's name by lscpu, else by Python."""
    listed = output_of("lscpu")
    names = re.findall(r"^\s*Model name:\s*(.+)$", listed, re.MULTILINE)
    return " and ".join(dict.fromkeys(names)) or platform.processor() or platform.machine()


def commit_of(checkout: Path) -> str:
    """Return the commit, and whether files differ from it."""
    name = output_of("git", "-C", str(checkout), "rev-parse", "--short", "HEAD")
    changed = output_of("git", "-C", str(checkout), "status", "--porcelain")
    return (name or "unknown") + (" with changes" if changed else "")


def output_of(*command: str) -> str:
    """Return what a command prints; "" where there is no such command."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
