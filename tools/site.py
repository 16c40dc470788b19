"""The site: which URL answers with which bytes, under which headers.

The live server and the static build both ask this one description. URLs are relative to the place
the site is served from, so that it also works below a sub-path.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from py_runtime.base.defaults import DEFAULTS
from py_runtime.encoder import encoding
from tools import models
from tools.errors import UserError
from tools.files import ROOT, is_plain_name, plain_file, sha256_of
from tools.pyodide_dist import CORE_FILES, DIST, LOCK, PACKAGES, VERSION, rare_files
from tools.snapshot import SnapshotStore
from tools.vendor import MODULES, STYLE, VENDOR
from tools.wheel import WheelStore

HUB = "https://huggingface.co"
HUB_ORIGINS = (HUB, "https://*.huggingface.co", "https://*.hf.co")  # it redirects to the others

SECURITY_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
        "style-src 'self'; img-src 'self' data:; connect-src 'self'; object-src 'none'; "
        "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
# The frames in which what answers hold runs, apart from everything: Python
# (web/ui/notebook/runner.js), and pages and diagrams (web/ui/markdown/framed.js).
FRAME_POLICIES = {
    "runner.html": "script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:",
    "preview.html": (
        "script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; media-src data: blob:; "
        "form-action 'none'; base-uri 'none'"
    ),
}
FRAME_POLICY = "sandbox allow-scripts; default-src 'none'; {}; frame-ancestors 'self'"
# The frame that asks the servers of tools which users add (web/ui/tools/mcp.js): the page itself
# connects to its own site alone.
CONNECTOR = "connector.html"
CONNECTOR_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src http: https:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
POLICY, OWN_ORIGIN = "Content-Security-Policy", "connect-src 'self'"
IMMUTABLE = "public, max-age=31536000, immutable"
REVALIDATE = "no-cache"
IMMUTABLE_FOLDERS = ("pyodide", "vendor", "assets", "snapshots")
# Not kept for times without network: what changes by itself, and what does the keeping.
NOT_KEPT = ("site.json", "models.json", "sw.js")

MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".json": "application/json",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".wgsl": "text/plain",
    ".woff2": "font/woff2",
    ".zip": "application/zip",
}

# Larger files (a model's weights) are told apart by size and date rather than read for a hash.
MAX_HASHED_SIZE = 32 << 20


class SiteError(UserError):
    """An error of a site that cannot be served; it says what is missing and what to do."""


@dataclass(frozen=True)
class Resource:
    """The answer at one URL."""

    url: str
    content: Path | bytes
    size: int
    etag: str
    sha256: str | None  # None: too large to be read for it

    @property
    def media_type(self) -> str:
        if is_of_models(self.url):
            return models.MEDIA_TYPE
        return MEDIA_TYPES.get(Path(self.url).suffix, "application/octet-stream")

    @property
    def cache_control(self) -> str:
        return IMMUTABLE if self.url.split("/")[0] in IMMUTABLE_FOLDERS else REVALIDATE

    def read(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


class Site:
    """The site, whose files are looked up at each request: a page sees what has changed on disk."""

    def __init__(
        self,
        web: Path,
        pyodide: Path,
        vendor: Path,
        wheels: WheelStore,
        snapshots: SnapshotStore,
        model_root: Path | None,
        hub: tuple[str, ...] = (),
        device: str | None = None,
    ) -> None:
        """`hub`: the address of the Hub, and where it redirects to; none is a page without it.

        `device`: the kind that pages take; none lets each choose for itself.
        """
        self.web = web.resolve()
        self.pyodide = pyodide.resolve()
        self.vendor = vendor.resolve()
        self.wheels = wheels
        self.snapshots = snapshots
        self.models = models.Models(model_root)
        self.hub = hub
        self.device = device
        self.headers = security_headers(hub)
        self.rare_wheels = rare_files(json.loads((self.pyodide / LOCK).read_bytes()))
        self.pyodide_folder = f"{VERSION}-{digest_of_folder(self.pyodide)[:8]}"
        self.vendor_folder = digest_of_folder(self.vendor)[:16]

    @classmethod
    def of_checkout(
        cls,
        model_root: Path | None = None,
        hub: tuple[str, ...] = HUB_ORIGINS,
        device: str | None = None,
    ) -> "Site":
        """Return this checkout's site.

        `model_root` defaults to the folder models/ if there is one.
        """
        if model_root is None and (ROOT / "models").is_dir():
            model_root = ROOT / "models"
        if model_root is not None and not model_root.is_dir():
            raise SiteError(f"there is no folder of models at {model_root}")
        for folder, names in ((DIST, CORE_FILES), (VENDOR, (*MODULES, STYLE))):
            absent = [name for name in names if not (folder / name).is_file()]
            if absent:
                raise SiteError(f"{folder} lacks {', '.join(absent)}. Run: make setup")
        wheels, snapshots = WheelStore(), SnapshotStore()
        return cls(ROOT / "web", DIST, VENDOR, wheels, snapshots, model_root, hub, device)

    def find(self, url: str) -> Resource | None:
        """Return the answer to a URL path, without its leading slash.

        None where there is nothing.
        """
        match (url or "index.html").split("/"):
            case parts if not all(map(is_plain_name, parts)):
                return None
            case ["site.json"]:
                return from_json(url, self.describe())
            case ["models.json"]:
                return from_json(url, self.models.listing())
            case ["pyodide", self.pyodide_folder, name]:
                return from_file(url, self.pyodide, [name])
            case ["vendor", self.vendor_folder, name]:
                return from_file(url, self.vendor, [name])
            case ["assets", folder, name]:
                return from_file(url, self.wheels.folder.resolve(), [folder, name])
            case ["snapshots", folder, name]:
                return from_file(url, self.snapshots.folder.resolve(), [folder, name])
            case [models.FOLDER, name, file]:
                path = self.models.find(name, file)
                return from_file(url, path.parent, [path.name]) if path else None
            case [models.FOLDER, name, inner, encoding.POOLING_CONFIG]:
                path = self.models.find_pooling(name, inner)
                return from_file(url, path.parent, [path.name]) if path else None
            case [models.FOLDER, file]:
                path = self.models.find_lone(file)
                return from_file(url, path.parent, [path.name]) if path else None
            case [models.FOLDER, *_]:
                return None
            case parts:
                return from_file("/".join(parts), self.web, parts)

    def headers_of(self, url: str) -> dict[str, str]:
        """Return the headers that every answer at a URL carries, errors too."""
        own = models.HEADERS if is_of_models(url) else {}
        if url in FRAME_POLICIES:
            own = {POLICY: FRAME_POLICY.format(FRAME_POLICIES[url])}
        if url == CONNECTOR:
            own = {POLICY: CONNECTOR_POLICY}
        return self.headers | own

    def urls(self) -> Iterator[str]:
        """Every URL there is."""
        yield from ("site.json", "models.json")
        yield from self.page_urls()
        yield from (f"{models.FOLDER}/{name}/{file}" for name, file in self.models.files())
        yield from (f"{models.FOLDER}/{file}" for file in self.models.lone_files())

    def page_urls(self) -> Iterator[str]:
        """Yield the URLs of all but the models and what is made at each request."""
        return self._page_urls(self._describe_places())

    def _page_urls(self, described: dict[str, Any]) -> Iterator[str]:
        yield described["runtime"]
        if snapshot := described.get("snapshot"):
            yield from (snapshot["memory"], *(url for _, url in snapshot["libraries"]))
        yield from (f"pyodide/{self.pyodide_folder}/{name}" for name in files_in(self.pyodide))
        yield from (f"vendor/{self.vendor_folder}/{name}" for name in files_in(self.vendor))
        yield from files_in(self.web)

    def describe(self) -> dict[str, Any]:
        """Return site.json.

        It says where the page finds the files whose URLs carry a hash, our headers, and what a
        browser keeps to start without network (web/sw.js), with its hashes: a release.
        """
        described = self._describe_places()
        found = (self.find(url) for url in self._page_urls(described) if self._is_kept(url))
        files = {each.url: each.sha256 for each in found if each and each.sha256}
        release = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]
        return {**described, "release": release, "files": files}

    def _is_kept(self, url: str) -> bool:
        """Return whether browsers keep it for times without network: not what few import."""
        return url not in NOT_KEPT and Path(url).name not in self.rare_wheels

    def _describe_places(self) -> dict[str, Any]:
        wheel = self.wheels.current()
        described: dict[str, Any] = {
            "version": wheel.name.split("-")[1],
            "pyodide": f"pyodide/{self.pyodide_folder}/",
            "vendor": f"vendor/{self.vendor_folder}/",
            "runtime": f"assets/{wheel.parent.name}/{wheel.name}",
            "packages": list(PACKAGES),
            "defaults": DEFAULTS,
            "headers": {name.lower(): text for name, text in self.headers.items()},
        }
        if self.hub:
            described["hub"] = self.hub[0]
        if self.device:
            described["device"] = self.device
        snapshot = self.snapshots.find(wheel)
        if snapshot is not None:
            described["snapshot"] = {
                **snapshot.describe("snapshots/"),
                "wheels": {
                    **dict.fromkeys(("py_runtime", "inpage"), described["runtime"]),
                    **self._package_wheels(),
                },
            }
        return described

    def _package_wheels(self) -> dict[str, str]:
        """Package -> URL of its wheel."""
        wheels = (name for name in files_in(self.pyodide) if name.endswith(".whl"))
        names = (name for name in wheels if name not in self.rare_wheels)
        return {name.split("-")[0]: f"pyodide/{self.pyodide_folder}/{name}" for name in names}


def is_of_models(url: str) -> bool:
    """Return whether a URL lies below models/, where nothing may be run."""
    return url.split("/")[0] == models.FOLDER


def security_headers(hub: tuple[str, ...]) -> dict[str, str]:
    """Return the headers.

    With the Hub allowed, the page may connect to it, and nothing else changes.
    """
    policy = SECURITY_HEADERS[POLICY].replace(OWN_ORIGIN, " ".join([OWN_ORIGIN, *hub]))
    return SECURITY_HEADERS | {POLICY: policy}


def from_json(url: str, value: Any) -> Resource:
    """Make a resource whose hash is that of its text."""
    body = json.dumps(value, indent=1).encode() + b"\n"
    sha256 = hashlib.sha256(body).hexdigest()
    return Resource(url, body, len(body), sha256[:32], sha256)


def from_file(url: str, root: Path, parts: list[str]) -> Resource | None:
    """None where there is no such plain file; large ones are told apart by time, not by hash."""
    path = plain_file(root, parts)
    if path is None:
        return None
    try:
        status = path.stat()
        if status.st_size > MAX_HASHED_SIZE:
            return Resource(
                url, path, status.st_size, f"{status.st_size:x}-{status.st_mtime_ns:x}", None
            )
        sha256 = remembered_sha256(path, status.st_size, status.st_mtime_ns)
        return Resource(url, path, status.st_size, sha256[:32], sha256)
    except OSError:  # unreadable
        return None


@lru_cache(maxsize=4096)
def remembered_sha256(path: Path, size: int, mtime_ns: int) -> str:
    """Read again only when the file's size or time is another."""
    return sha256_of(path)


def files_in(root: Path) -> list[str]:
    """Names below `root`, folders and all, in a fixed order; dotfiles and links left out."""
    return sorted(names_in(os.fspath(root), ""))


def names_in(folder: str, prefix: str) -> Iterator[str]:
    """Yield the names in no order, each after `prefix`; a folder that has just gone has none."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_plain_name(entry.name) and not entry.is_symlink():
                if entry.is_dir():
                    yield from names_in(entry.path, f"{prefix}{entry.name}/")
                else:
                    yield prefix + entry.name


def digest_of_folder(root: Path) -> str:
    """Another one as soon as any file in it is another."""
    listing = "".join(f"{name} {sha256_of(root / name)}\n" for name in files_in(root))
    return hashlib.sha256(listing.encode()).hexdigest()
