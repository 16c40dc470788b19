"""The Pyodide distribution that the page loads, collected into build/pyodide.

The core comes from npm. The wheels that Pyodide's lock file names come from the first source that
has them, and none is used before its sha256 agrees with the lock. The lock that the page gets names
these wheels and no others.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tools.errors import UserError, exit_status
from tools.files import BUILD, ROOT, user_cache, write_whole

VERSION = "314.0.3"
PACKAGES = ("numpy", "jinja2")
# Fetched by a page when somebody's Python imports them, and by nobody else's.
ON_IMPORT = ("matplotlib", "pandas", "micropip")
# Pyodide's own build of jinja2 is on its CDN alone; any package index has the same release. The
# CDN alone also has markupsafe, which jinja2 depends on: py_runtime/chat/plain_markup.py stands in.
REPLACED: dict[str, dict[str, Any]] = {
    "jinja2": {
        "sha256": "85ece4451f492d0c13c5dd7c13a64681a86afae63a5f347908daf103ce6d2f67",
        "depends": [],
    }
}
LOCK = "pyodide-lock.json"
CORE_FILES = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    LOCK,
)
DIST = BUILD / "pyodide"
NPM_PACKAGE = ROOT / "node_modules" / "pyodide"

CDN_SECONDS = 5  # before the next source is tried


class DistError(UserError):
    """An error of a distribution that cannot be put together; it says what was tried."""


@dataclass(frozen=True)
class Wheel:
    """A package as Pyodide's lock file names it."""

    file_name: str
    sha256: str

    def is_intact(self, data: bytes) -> bool:
        return hashlib.sha256(data).hexdigest() == self.sha256


class SourceError(Exception):
    """An error of a source that has nothing; the text says why."""


class Source(Protocol):
    """A place that wheels may come from."""

    name: str

    def fetch(self, wheels: Sequence[Wheel]) -> dict[str, bytes]:
        """File name -> content, for those of `wheels` that it has; SourceError if it has none."""


class Folder:
    """Wheels on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = str(folder)

    def fetch(self, wheels: Sequence[Wheel]) -> dict[str, bytes]:
        paths = [self.folder / wheel.file_name for wheel in wheels]
        return {path.name: path.read_bytes() for path in paths if path.is_file()}


class Cdn:
    """A network source that has one file at a time."""

    name = "Pyodide's CDN"

    def fetch(self, wheels: Sequence[Wheel]) -> dict[str, bytes]:
        found = {}
        for wheel in wheels:
            print(f"fetching {wheel.file_name} from {self.name}", flush=True)
            url = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/{wheel.file_name}"
            try:
                with urllib.request.urlopen(url, timeout=CDN_SECONDS) as response:
                    found[wheel.file_name] = response.read()
            except OSError as error:
                raise SourceError(str(error)) from error
        return found


class PackageIndex:
    """The index that pip is set to, which has the wheels that need no building for Pyodide."""

    name = "pip's package index"
    pure = "-py3-none-any.whl"

    def fetch(self, wheels: Sequence[Wheel]) -> dict[str, bytes]:
        pure = [wheel.file_name for wheel in wheels if wheel.file_name.endswith(self.pure)]
        found = {}
        for file_name in pure:
            requirement = "==".join(file_name.removesuffix(self.pure).split("-"))
            print(f"fetching {requirement} from {self.name}", flush=True)
            with tempfile.TemporaryDirectory() as temporary:
                archive = pip_download(requirement, Path(temporary))
                found[archive.name] = archive.read_bytes()
        return found


class OpenWebui:
    """The Python package open-webui, which carries the same distribution for its own page."""

    requirement = "open-webui==0.12.4"
    folder = "open_webui/frontend/pyodide"
    name = f"the Python package {requirement}"

    def fetch(self, wheels: Sequence[Wheel]) -> dict[str, bytes]:
        print(f"fetching {self.name} (106 MB) for its Pyodide wheels", flush=True)
        with tempfile.TemporaryDirectory() as temporary:
            archive = pip_download(self.requirement, Path(temporary))
            with zipfile.ZipFile(archive) as bundle:
                inside = set(bundle.namelist())
                wanted = {wheel.file_name: f"{self.folder}/{wheel.file_name}" for wheel in wheels}
                return {name: bundle.read(at) for name, at in wanted.items() if at in inside}


def pip_download(requirement: str, folder: Path) -> Path:
    """Return the archive that pip found; SourceError has pip's last words."""
    # Nothing of it is installed or run, so its own dependencies and Python do not matter.
    options = ["--no-deps", "--ignore-requires-python", "--only-binary=:all:", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder)]
    pip = subprocess.run([*command, requirement], capture_output=True, text=True)
    archives = list(folder.glob("*.whl"))
    if pip.returncode != 0 or not archives:
        last_line = (pip.stderr.strip().splitlines() or ["no file"])[-1]
        raise SourceError(f"pip download: {last_line}")
    return archives[0]


def collect(
    *,
    npm_package: Path = NPM_PACKAGE,
    out: Path = DIST,
    cache: Path | None = None,
    sources: Sequence[Source] = (PackageIndex(), Cdn(), OpenWebui()),
    packages: Sequence[str] = (*PACKAGES, *ON_IMPORT),
    replaced: Mapping[str, Mapping[str, Any]] = REPLACED,
) -> None:
    """Make `out` hold the core and the wheels of `packages`, and nothing else."""
    core = read_core(npm_package)
    lock = cut_lock(json.loads(core[LOCK]), packages, replaced)
    core[LOCK] = json.dumps(lock, indent=1).encode()
    entries = lock["packages"].values()
    wheels = [Wheel(entry["file_name"], entry["sha256"]) for entry in entries]
    kept = (cache or user_cache()) / "pyodide"
    # All is at hand and checked before the first byte is written.
    found = obtain(wheels, [Folder(out), Folder(kept), *sources])
    for name, data in found.items():
        keep(kept / name, data)
    contents = core | found
    for name, data in contents.items():
        path = out / name
        if not (path.is_file() and path.read_bytes() == data):
            write_whole(path, data)
    for path in out.iterdir():
        if path.is_file() and path.name not in contents:
            path.unlink()


def rare_files(lock: Mapping[str, Any]) -> set[str]:
    """Return the files of the wheels that only an import fetches, from a lock that is cut."""
    needed: set[str] = set()
    waiting = [name for name in PACKAGES if name in lock["packages"]]
    while waiting:
        name = waiting.pop().replace("_", "-")
        if name not in needed:
            needed.add(name)
            waiting += lock["packages"][name]["depends"]
    others = lock["packages"].keys() - needed
    return {lock["packages"][name]["file_name"] for name in others}


def read_core(npm_package: Path) -> dict[str, bytes]:
    """Pyodide's own files from npm; DistError where they are not whole or of another version."""
    try:
        version = json.loads((npm_package / "package.json").read_bytes())["version"]
        core = {name: (npm_package / name).read_bytes() for name in CORE_FILES}
    except (OSError, ValueError, KeyError) as error:
        raise DistError(
            f"Pyodide's npm package is not complete in {npm_package}: {error}. Run: npm ci"
        ) from error
    if version != VERSION:
        raise DistError(f"{npm_package} holds Pyodide {version}, not {VERSION}. Run: npm ci")
    return core


def cut_lock(
    lock: dict[str, Any], packages: Sequence[str], replaced: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the lock with `packages` and all that they depend on, and with nothing else."""
    entries: dict[str, dict[str, Any]] = {}
    waiting = list(packages)
    while waiting:
        name = waiting.pop().replace("_", "-")  # among what others depend on, both spellings
        if name in entries:
            continue
        if name not in lock["packages"]:
            raise DistError(f"Pyodide {VERSION} has no package {name!r} in its lock file")
        entries[name] = {**lock["packages"][name], **replaced.get(name, {})}
        waiting += entries[name]["depends"]
    return {**lock, "packages": entries}


def obtain(wheels: Sequence[Wheel], sources: Sequence[Source]) -> dict[str, bytes]:
    """File name -> content for every wheel, each from the first source that has it intact."""
    have: dict[str, bytes] = {}
    tried: list[str] = []
    for source in sources:
        missing = [wheel for wheel in wheels if wheel.file_name not in have]
        if not missing:
            break
        try:
            found = source.fetch(missing)
        except SourceError as error:
            tried.append(f"{source.name}: {error}")
            continue
        for wheel in missing:
            data = found.get(wheel.file_name)
            if data is None:
                tried.append(f"{source.name}: no {wheel.file_name}")
            elif not wheel.is_intact(data):
                tried.append(f"{source.name}: wrong sha256 of {wheel.file_name}")
            else:
                have[wheel.file_name] = data

    missing = [wheel for wheel in wheels if wheel.file_name not in have]
    if missing:
        names = ", ".join(wheel.file_name for wheel in missing)
        raise DistError(f"{names} cannot be fetched as Pyodide's lock names it. {'. '.join(tried)}")
    return have


def keep(path: Path, data: bytes) -> None:
    """Put a download into the cache; a cache that cannot be written only costs time next time."""
    try:
        if not (path.is_file() and path.read_bytes() == data):
            write_whole(path, data)
    except OSError as error:
        print(f"not kept for next time: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(exit_status(collect))
