"""A small site of known content, with things around it that must not be served; its server."""

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from inpage.http_server import listen
from py_runtime import __version__
from tools.site import Site
from tools.snapshot import SnapshotStore
from tools.wheel import WheelStore

SCRIPT = b"export const answer = 42; // and so on\n" * 100
WASM = bytes(range(256)) * 40
WEIGHTS = os.urandom(1000)
WHEEL_URL = f"assets/0123456789abcdef/inpage-{__version__}-py3-none-any.whl"


GRAPH = b'{"ops": []}' + b" " * 1000
# Lies beside a model, and no manifest lists it: each would be a page or a script of this origin.
STRAY = dict.fromkeys(
    ("x.html", "x.svg", "x.js", "x.json", "sub/x.html", "model.safetensors.html"),
    b"<script>not for the web</script>",
)


class BuiltWheel(WheelStore):
    """A wheel that is there already."""

    def current(self) -> Path:
        return self.folder / Path(WHEEL_URL).relative_to("assets")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


LOCK = b'{"packages": {"rare": {"file_name": "rare-1-any.whl", "depends": []}}}'


def write_files(root: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def write_model(folder: Path, files: dict[str, bytes], **changes: Any) -> None:
    """Write a folder whose manifest lists `files`."""
    manifest = {
        "format": "inpage-model",
        "version": 1,
        "name": folder.name,
        "parameters": 7,
        "context": 64,
        "size": sum(map(len, files.values())),
        "gpu_bytes": 99,
        "quantisation": "none",
        "graph": "graph.json",
        "weights": [name for name in files if name.endswith(".safetensors")],
        "goldens": None,
        "files": {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
        },
        "requires": {
            "features": [],
            "limits": {"max_buffer_size": 1, "max_storage_buffer_binding_size": 1},
        },
        "source": {"name": "nobody", "url": None, "licence": "none"},
        "created_by": "a test",
    }
    write_files(folder, {**files, "manifest.json": json.dumps(manifest | changes).encode()})


def make_python(root: Path) -> tuple[Path, WheelStore, SnapshotStore]:
    """Make the Python of a site, in a few kB: its distribution, its wheel, and no snapshot."""
    write_files(
        root,
        {
            "pyodide/pyodide.mjs": SCRIPT,
            "pyodide/pyodide.asm.wasm": WASM,
            "pyodide/pyodide-lock.json": LOCK,
            "pyodide/rare-1-any.whl": b"imported by few",
            "wheels/.current.json": b"{}",
            WHEEL_URL.replace("assets", "wheels", 1): b"a wheel",
        },
    )
    wheels = BuiltWheel(project=root, folder=root / "wheels")
    return root / "pyodide", wheels, SnapshotStore(root / "pyodide", root / "snapshots")


def make_site(root: Path) -> Site:
    pyodide, wheels, snapshots = make_python(root)
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
            "vendor/marked.js": SCRIPT,
            "models/torn/manifest.json": b"{",
            "models/torn/weights.safetensors": WEIGHTS,
            "models/unfinished/weights.safetensors": WEIGHTS,
            "models/.cache/manifest.json": b"{}",
        },
    )
    write_model(root / "models/tiny", {"graph.json": GRAPH, "weights.safetensors": WEIGHTS})
    write_model(root / "elsewhere", {"graph.json": GRAPH})
    write_files(root / "models/tiny", STRAY)
    (root / "web/link.txt").symlink_to(root / "secret.txt")
    (root / "web/folder").symlink_to(root, target_is_directory=True)
    (root / "models/linked").symlink_to(root / "elsewhere", target_is_directory=True)
    return Site(root / "web", pyodide, root / "vendor", wheels, snapshots, root / "models")


@contextmanager
def serving_app(app: ASGIApp, **settings: Any) -> Iterator[int]:
    """Run a real server in a thread, with these settings of uvicorn's, and yield its port."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning", **settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
