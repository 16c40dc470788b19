"""The py_runtime wheel that the page installs, built when its sources changed."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tools.errors import UserError
from tools.files import BUILD, ROOT, sha256_of, write_whole

INPUT_FOLDERS = ("inpage", "py_runtime", "shaders", "web/bridge")
INPUT_FILES = ("pyproject.toml", "LICENSE", "web/bridge.js")
EPOCH = "1580601600"  # one date for every file in the wheel, so that equal sources give equal bytes


class WheelError(UserError):
    """An error of a wheel that cannot be built; it says what the builder said."""


class WheelStore:
    """A store of wheels of `project` as `folder`/<first 16 hex digits of its sha256>/<wheel>."""

    def __init__(self, project: Path = ROOT, folder: Path = BUILD / "wheels") -> None:
        self.project = project
        self.folder = folder
        self._record = folder / ".current.json"
        self._lock = threading.Lock()

    def current(self) -> Path:
        """Return the wheel of the sources as they are now, built if it must be."""
        with self._lock:
            inputs = digest_of_inputs(self.project)
            return self._built_from(inputs) or self._build(inputs)

    def _built_from(self, inputs: str) -> Path | None:
        try:
            record = json.loads(self._record.read_bytes())
            wheel = self.folder / str(record["wheel"])
        except (OSError, ValueError, KeyError):
            return None
        return wheel if record.get("inputs") == inputs and wheel.is_file() else None

    def _build(self, inputs: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".") as temporary:
            fresh = run_builder(self.project, Path(temporary))
            wheel = self.folder / sha256_of(fresh)[:16] / fresh.name
            wheel.parent.mkdir(exist_ok=True)
            fresh.replace(wheel)
        record = {"inputs": inputs, "wheel": wheel.relative_to(self.folder).as_posix()}
        write_whole(self._record, json.dumps(record).encode())
        for other in self.folder.glob("[0-9a-f]*/*.whl"):
            if other != wheel:
                other.unlink()
                other.parent.rmdir()
        return wheel


def digest_of_inputs(project: Path) -> str:
    """Another one as soon as any source of the wheel is another."""
    return digest_of(project, tuple(sorted(facts_of_inputs(project))))


def facts_of_inputs(project: Path) -> Iterator[tuple[str, int, int]]:
    """(name, size, time): each page that starts asks, and few files have changed since the last."""
    for name in INPUT_FILES:
        status = (project / name).stat()
        yield name, status.st_size, status.st_mtime_ns
    for folder in INPUT_FOLDERS:
        yield from facts_of_folder(os.fspath(project / folder), folder)


def facts_of_folder(folder: str, name: str) -> Iterator[tuple[str, int, int]]:
    """Yield the facts of all files below that are not compiled; a link to a folder is left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            inside = f"{name}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from facts_of_folder(entry.path, inside)
            elif entry.is_file() and not entry.name.endswith(".pyc"):
                status = entry.stat()
                yield inside, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=16)
def digest_of(project: Path, facts: tuple[tuple[str, int, int], ...]) -> str:
    """Return the hash of names and contents; files are read again if a size or time has changed."""
    digest = hashlib.sha256()
    for name, _, _ in facts:
        digest.update(f"{name}\0{sha256_of(project / name)}\n".encode())
    return digest.hexdigest()


def run_builder(project: Path, folder: Path) -> Path:
    """Run the builder and return the wheel's path; WheelError has the builder's last words."""
    # A process of its own, so that the server never imports a build system.
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    built = subprocess.run(
        [*command, str(folder)], cwd=project, env=environment, capture_output=True, text=True
    )
    wheels = list(folder.glob("*.whl"))
    if built.returncode != 0 or not wheels:
        last_line = (built.stderr.strip().splitlines() or ["no wheel came out"])[-1]
        raise WheelError(f"the py_runtime wheel could not be built: {last_line}")
    return wheels[0]
