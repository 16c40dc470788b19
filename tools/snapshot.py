"""The snapshot of Python's memory that the page starts from, made when it does not fit any more.

It holds an interpreter with numpy and the runtime imported, as tools/snapshot.mjs leaves it in
Node. It belongs to one build of Pyodide and one wheel of the runtime: a page that has another wheel
gets none, and starts without.
"""

import gzip
import hashlib
import json
import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cached_property
from os import SEEK_END
from pathlib import Path
from typing import Any

from tools.errors import UserError
from tools.files import BUILD, ROOT, sha256_of, write_whole
from tools.pyodide_dist import DIST, LOCK, rare_files

SITE_PACKAGES = "/lib/python3.14/site-packages"
# The native modules that `import numpy` loads. Each is a file of its own here, so that browsers
# keep its machine code.
LIBRARIES = ("numpy/_core/_multiarray_umath", "numpy/linalg/_umath_linalg")
SUFFIX = ".cpython-314-wasm32-emscripten.so"
MEMORY = "memory.snapshot"  # compressed, since a static host would not: 12.4 MB of 54
GZIP_LEVEL = 6  # 9 saves 1%, for 9 s instead of 2 s
SCRIPTS = ("tools/snapshot.mjs", "tools/snapshot.py", "web/interpreter.js", "web/bridge.js")


class SnapshotError(UserError):
    """An error of a snapshot that cannot be made; it says what Node said."""


@dataclass(frozen=True)
class Snapshot:
    """The memory of a Python that has imported the runtime, and its native libraries."""

    folder: Path

    def describe(self, prefix: str) -> dict[str, Any]:
        """Describe it for site.json: addresses, and each library's place among Python's files."""
        folder = f"{prefix}{self.folder.name}/"
        with (self.folder / MEMORY).open("rb") as file:
            file.seek(-4, SEEK_END)  # a gzip file ends with how long it is unzipped
            size = int.from_bytes(file.read(), "little")
        return {"memory": folder + MEMORY, "size": size, "libraries": libraries_in(folder)}


def libraries_in(folder: str) -> list[tuple[str, str]]:
    """(path among Python's files, file in `folder`) of each."""
    return [(f"{SITE_PACKAGES}/{path}{SUFFIX}", folder + file_of(path)) for path in LIBRARIES]


def file_of(library: str) -> str:
    """Return the file that holds a native library, by its place among Python's files."""
    return f"{Path(library).name}.wasm"


class SnapshotStore:
    """A store of one snapshot as `folder`/<16 hex digits>/, and what it was made of."""

    def __init__(self, pyodide: Path = DIST, folder: Path = BUILD / "snapshots") -> None:
        self.pyodide = pyodide
        self.folder = folder
        self._record = folder / ".current.json"

    def find(self, wheel: Path) -> Snapshot | None:
        """Return the snapshot with this wheel of the runtime in it, if it was made."""
        try:
            record = json.loads(self._record.read_bytes())
            found = Snapshot(self.folder / record["folder"])
        except (OSError, ValueError, KeyError):
            return None
        return found if record.get("inputs") == self._digest_of_inputs(wheel) else None

    def make(self, wheel: Path) -> Snapshot:
        """Return the snapshot with this wheel, made if it must be."""
        if found := self.find(wheel):
            return found
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".") as temporary:
            fresh = Path(temporary) / "fresh"
            fresh.mkdir()
            self._fill(fresh, wheel)
            snapshot = Snapshot(self.folder / sha256_of(fresh / MEMORY)[:16])
            if not snapshot.folder.exists():
                fresh.rename(snapshot.folder)
        record = {"inputs": self._digest_of_inputs(wheel), "folder": snapshot.folder.name}
        write_whole(self._record, json.dumps(record).encode())
        for other in self.folder.glob("[0-9a-f]*"):
            if other != snapshot.folder:
                shutil.rmtree(other)
        return snapshot

    def _fill(self, folder: Path, wheel: Path) -> None:
        plain = folder / "memory"
        rare = rare_files(json.loads((self.pyodide / LOCK).read_bytes()))
        packages = [path for path in sorted(self.pyodide.glob("*.whl")) if path.name not in rare]
        (numpy,) = (path for path in packages if path.name.startswith("numpy-"))
        with zipfile.ZipFile(numpy) as archive:
            for library in LIBRARIES:
                (folder / file_of(library)).write_bytes(archive.read(library + SUFFIX))
        given = {
            "pyodide": f"{self.pyodide}/",
            "wheels": [str(path) for path in (*packages, wheel)],
            "libraries": libraries_in(f"{folder}/"),
            "site_packages": SITE_PACKAGES,
            "out": str(plain),
        }
        command = ["node", str(ROOT / "tools/snapshot.mjs"), json.dumps(given)]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode != 0:
            last_line = (made.stderr.strip().splitlines() or ["nothing"])[-1]
            raise SnapshotError(f"the snapshot of Python could not be made; Node said: {last_line}")
        (folder / MEMORY).write_bytes(gzip.compress(plain.read_bytes(), GZIP_LEVEL, mtime=0))
        plain.unlink()

    def _digest_of_inputs(self, wheel: Path) -> str:
        scripts = [sha256_of(ROOT / name) for name in SCRIPTS]
        parts = [wheel.parent.name, *scripts, *self._pyodide_digests]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def _pyodide_digests(self) -> list[str]:
        return [sha256_of(path) for path in sorted(self.pyodide.iterdir()) if path.is_file()]
