"""A small site of known content, with things around it that must not be served."""

import os
from dataclasses import dataclass
from pathlib import Path

from tools.site import Site
from tools.snapshot import SnapshotStore
from tools.wheel import WheelStore

SCRIPT = b"export const answer = 42; // and so on\n" * 100
WASM = bytes(range(256)) * 40
WEIGHTS = os.urandom(1000)
WHEEL_URL = "assets/0123456789abcdef/inpage-0.1.0-py3-none-any.whl"


class BuiltWheel(WheelStore):
    """A wheel that is there already."""

    def current(self) -> Path:
        return self.folder / Path(WHEEL_URL).relative_to("assets")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


def write_files(root: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def make_site(root: Path) -> Site:
    write_files(
        root,
        {
            "secret.txt": b"not for the web",
            "web/index.html": b"<!doctype html><title>page</title>",
            "web/app.js": SCRIPT,
            "web/style.css": b"body { color: teal }",
            "web/kernels/add.wgsl": b"fn add() {}",
            "web/.hidden/key.txt": b"not for the web",
            "web/.env": b"not for the web",
            "pyodide/pyodide.mjs": SCRIPT,
            "pyodide/pyodide.asm.wasm": WASM,
            "vendor/marked.js": SCRIPT,
            "wheels/.current.json": b"{}",
            WHEEL_URL.replace("assets", "wheels", 1): b"a wheel",
            "models/tiny/manifest.json": b'{"version": 1, "size": 1000, "parameters": 7, "a": 2}',
            "models/tiny/weights.safetensors": WEIGHTS,
            "models/torn/manifest.json": b"{",
            "models/unfinished/weights.safetensors": WEIGHTS,
            "models/.cache/manifest.json": b"{}",
            "elsewhere/manifest.json": b"{}",
        },
    )
    (root / "web/link.txt").symlink_to(root / "secret.txt")
    (root / "web/folder").symlink_to(root, target_is_directory=True)
    (root / "models/linked").symlink_to(root / "elsewhere", target_is_directory=True)
    wheels = BuiltWheel(project=root, folder=root / "wheels")
    snapshots = SnapshotStore(root / "pyodide", root / "snapshots")
    return Site(root / "web", root / "pyodide", root / "vendor", wheels, snapshots, root / "models")
