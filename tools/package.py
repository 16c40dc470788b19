"""The packages that others install: the wheel, and the npm package with the same wheel in it.

The npm package's module is web/engine.js. Everything that it and its worker fetch lies beside it,
in dist/, so that a page may have that folder copied anywhere (docs/embedding.md).
"""

import gzip
import io
import json
import re
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tools.errors import UserError, exit_status
from tools.files import BUILD, ROOT, write_whole
from tools.site import Site
from tools.wheel import EPOCH

OUT = BUILD / "packages"
# The page's side, and the workers'.
ENTRIES = (
    "engine.js",
    "worker.js",
    "unzip_worker.js",
    "shared_worker.js",
    "bridge/cpu_worker.js",
)
TYPES = ("engine.d.ts", "inpage.d.ts")
IMPORT = re.compile(r"""(?:from|import\()\s*"(\.[\w./]+\.js)"|^import "(\.[\w./]+\.js)";""", re.M)
# Only our own page has it: here engines are made.
GLOBAL = re.compile(r"declare global \{.*?\n\}\n\n", re.DOTALL)
# Of site.json, by worker.js.
WANTED = ("pyodide", "packages", "runtime", "snapshot", "hub", "device")
DOCUMENT = ROOT / "docs" / "embedding.md"


class PackageError(UserError):
    """An error of a package that cannot be written; it says what is missing."""


def package(out: Path = OUT) -> list[Path]:
    """Write both packages and return the paths of the wheel and of npm's tarball."""
    site = Site.of_checkout()
    wheel = site.wheels.current()
    described = site.describe()
    if "snapshot" not in described:
        raise PackageError("there is no snapshot of Python for these sources. Run: make setup")
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(wheel, out / wheel.name)
    version = str(described["version"])
    files = {
        "package.json": as_json(manifest(version)),
        "README.md": DOCUMENT.read_bytes(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        **{f"dist/{name}": data for name, data in dist_files(site, described)},
    }
    tarball = out / f"inpage-{version}.tgz"
    write_whole(tarball, pack(files))
    return [out / wheel.name, tarball]


def manifest(version: str) -> dict[str, object]:
    """Return npm's package.json."""
    return {
        "name": "inpage",
        "version": version,
        "description": "A language model that runs in the user's browser, on WebGPU.",
        "license": "Apache-2.0",
        "type": "module",
        "exports": {
            ".": {"types": "./dist/engine.d.ts", "default": "./dist/engine.js"},
            "./dist/*": "./dist/*",
        },
        "types": "./dist/engine.d.ts",
        "sideEffects": False,
    }


def dist_files(site: Site, described: dict[str, object]) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of what a page fetches."""
    for name in modules_from(site.web, ENTRIES):
        yield name, (site.web / name).read_bytes()
    for name in TYPES:
        text = (site.web / name).read_text(encoding="utf-8")
        yield name, GLOBAL.sub("", text).encode()
    wanted = {name: described[name] for name in WANTED if name in described}
    yield "site.json", as_json(wanted)
    prefixes = ("pyodide/", "assets/", "snapshots/")
    for url in site.urls():
        if url.startswith(prefixes):
            resource = site.find(url)
            if resource is None:
                raise PackageError(f"{url} vanished or became unreadable")
            yield url, resource.read()


def modules_from(root: Path, entries: tuple[str, ...]) -> list[str]:
    """Return these modules and all that they import, by their names below `root`."""
    found: list[str] = []
    waiting = list(entries)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.append(name)
        path = root / name
        for groups in IMPORT.findall(path.read_text(encoding="utf-8")):
            imported = (path.parent / "".join(groups)).resolve()
            waiting.append(imported.relative_to(root).as_posix())
    return sorted(found)


def as_json(value: object) -> bytes:
    """Write JSON that people can read, too."""
    return json.dumps(value, indent=1).encode() + b"\n"


def pack(files: dict[str, bytes]) -> bytes:
    """Pack files as npm wants them, below package/; equal files give equal bytes."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mtime, entry.mode = len(data), int(EPOCH), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), mtime=0)


def main() -> None:
    """Says what was written, and how large it is."""
    for path in package():
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(exit_status(main))
