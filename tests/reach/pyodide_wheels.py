"""The wheels that notebooks and micropip add to our Pyodide: releases that its own lock names.

Pyodide's builds of them are on its CDN alone; any package index has the same releases. They are
fetched once, by `make test`, and pip checks them.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.files import BUILD
from tools.pyodide_dist import DIST, NPM_PACKAGE, cut_lock

FOLDER = BUILD / "reach"
WHEELS = FOLDER / "wheels"
PACKAGES = ("micropip", "ipython", "jedi")
LOCK = "pyodide-lock.json"
COMM = "comm-0.2.3-py3-none-any.whl"  # the kernel wants it, and Pyodide has none


def entries() -> dict[str, dict[str, Any]]:
    lock = json.loads((NPM_PACKAGE / LOCK).read_bytes())
    found: dict[str, dict[str, Any]] = cut_lock(lock, PACKAGES, {})["packages"]
    return found


def collect() -> None:
    requirements = [f"{name}=={entry['version']}" for name, entry in entries().items()]
    requirements.append("==".join(COMM.split("-")[:2]))
    # They are for Pyodide's Python, not for this one.
    options = ["--no-deps", "--ignore-requires-python", "--only-binary=:all:", "--quiet"]
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", *options]
    subprocess.run([*pip, "--dest", str(WHEELS), *requirements], check=True)


def write_pyodide(folder: Path) -> None:
    """Our Pyodide, with them in it and in its lock."""
    assert WHEELS.is_dir(), "Run: make build/reach/.installed"
    shutil.copytree(DIST, folder)
    lock = json.loads((folder / LOCK).read_bytes())
    for name, entry in entries().items():
        wheel = WHEELS / entry["file_name"]
        shutil.copyfile(wheel, folder / wheel.name)
        sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lock["packages"][name] = {**entry, "sha256": sha256}
    (folder / LOCK).write_text(json.dumps(lock))


if __name__ == "__main__":
    collect()
