"""A small imitation of the Hub and of the CDN that it redirects to, on two origins of this machine.

It is as strict as they are: the CDN answers no preflight, takes one plain range with a start, and
its addresses expire. `faults` says what goes wrong with a file.
"""

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.background import answering

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_imitated"
SIMPLE_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
PAGE_ENTRIES = 2  # of a tree, so that there are several pages
EXPOSED = "X-Repo-Commit, X-Error-Code, Link, ETag, Content-Range, Content-Length"
# What may be wrong with a file: the CDN's connection ends half-way (once, or always), its bytes are
# wrong, it drips from half-way on until it is let go, its address has expired (once), each answer
# brings a few bytes and ends.
CUT_ONCE, CUT, WRONG, HELD, EXPIRED_ONCE = "cut once", "cut", "wrong", "held", "expired once"
CRUMBS, CRUMB = "crumbs", 16  # bytes


@dataclass
class Repository:
    files: dict[str, bytes]
    gated: bool = False
    terms_accepted: bool = True
    licence: str = "apache-2.0"
    downloads: int = 0
    parameters: int = 0
    revisions: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})


@dataclass
class Seen:
    """A request."""

    host: str  # "hub" or "cdn"
    method: str
    path: str
    headers: dict[str, str]


class Imitation:
    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.faults: dict[str, str] = {}  # by path
        self.seen: list[Seen] = []
        self.sent: Counter[str] = Counter()  # bytes of downloads, by path
        self.status: int | None = None  # what the Hub answers with, whatever it is asked
        self.ranges = True  # whether the CDN knows any
        self.go_on = threading.Event()
        self.left = threading.Event()  # whoever was downloading has closed the connection
        self.hub = self.cdn = ""  # addresses
        self._signatures = 0
        self._expired: set[str] = set()

    def put(self, name: str, **files: bytes) -> Repository:
        """Put files into a repository; `__` stands for a dot in their names."""
        named = {path.replace("__", "."): data for path, data in files.items()}
        self.repositories[name] = Repository(named)
        return self.repositories[name]

    def take_seen(self) -> list[Seen]:
        taken, self.seen = self.seen, []
        return taken

    # What the Hub answers ----------------------------------------------------------------------

    def about(self, name: str, commit: str) -> Any:
        repository = self.repositories[name]
        tags = ["gguf", f"license:{repository.licence}"]
        return {
            "id": name,
            "sha": commit,
            "gated": "manual" if repository.gated else False,
            "tags": tags,
        }

    def search(self, words: str) -> list[Any]:
        """List repositories by words in their names, the one that is downloaded most first."""
        found = [name for name in self.repositories if words.lower() in name.lower()]
        rows = [
            {
                **{key: value for key, value in self.about(name, COMMIT).items() if key != "sha"},
                "downloads": self.repositories[name].downloads,
                "gguf": {"total": self.repositories[name].parameters},
            }
            for name in found
        ]
        return sorted(rows, key=lambda row: -row["downloads"])

    def tree(self, name: str) -> list[Any]:
        rows: list[Any] = [{"type": "directory", "path": "more", "oid": "0" * 40, "size": 0}]
        rows.append({"type": "file", "path": "README.md", "oid": "1" * 40, "size": 7})
        for path, data in self.repositories[name].files.items():
            oid = hashlib.sha256(data).hexdigest()
            lfs = {"oid": oid, "size": len(data), "pointerSize": 130}
            rows.append({"type": "file", "path": path, "size": len(data), "oid": "2", "lfs": lfs})
        return rows

    def signed(self, name: str, path: str) -> str:
        self._signatures += 1
        signature = str(self._signatures)
        if self.faults.get(path) == EXPIRED_ONCE:
            del self.faults[path]
            self._expired.add(signature)
        return f"{self.cdn}/{name}/{quote(path)}?Signature={signature}"

    def has_expired(self, query: str) -> bool:
        return parse_qs(query).get("Signature", [""])[0] in self._expired | {""}


class Handler(BaseHTTPRequestHandler):
    imitation: Imitation
    host: str
    protocol_version = "HTTP/1.1"

    def log_message(self, *details: Any) -> None:
        pass

    def note(self) -> None:
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.imitation.seen.append(Seen(self.host, self.command, self.path, headers))

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Expose-Headers", EXPOSED)
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)


class HubHandler(Handler):
    host = "hub"

    def do_OPTIONS(self) -> None:
        self.note()
        self.answer(204, Access_Control_Allow_Headers="authorization, range")

    def do_GET(self) -> None:
        self.note()
        path = unquote(urlsplit(self.path).path).lstrip("/")
        if self.imitation.status is not None:
            return self.answer(self.imitation.status, Retry_After="30")
        if path == "api/models":
            query = parse_qs(urlsplit(self.path).query)
            return self.json(self.imitation.search(query["search"][0]))
        found = re.fullmatch(r"(?:api/models/)?([^/]+/[^/]+)/(revision|tree|resolve)/(.+)", path)
        if found is None or found[1] not in self.imitation.repositories:
            return self.answer(401, X_Error_Code="RepoNotFound")
        self.about(*found.groups())

    def about(self, name: str, kind: str, rest: str) -> None:
        repository = self.imitation.repositories[name]
        revision, _, path = rest.partition("/")
        commit = repository.revisions.get(revision, revision)
        if commit not in repository.revisions.values():
            return self.answer(404, X_Error_Code="RevisionNotFound")
        if kind == "revision":
            return self.json(self.imitation.about(name, commit))
        if kind == "tree":
            return self.tree(name)
        if repository.gated and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, X_Error_Code="GatedRepo")
        if not repository.terms_accepted:
            return self.answer(403, X_Error_Code="GatedRepo")
        if path not in repository.files:
            return self.answer(404, X_Error_Code="EntryNotFound")
        self.answer(302, Location=self.imitation.signed(name, path))

    def tree(self, name: str) -> None:
        split = urlsplit(self.path)
        at = int(parse_qs(split.query).get("cursor", ["0"])[0])
        rows = self.imitation.tree(name)
        further = f"{self.imitation.hub}{split.path}?recursive=true&cursor={at + PAGE_ENTRIES}"
        link = {"Link": f'<{further}>; rel="next"'} if at + PAGE_ENTRIES < len(rows) else {}
        self.json(rows[at : at + PAGE_ENTRIES], **link)

    def json(self, value: Any, **headers: str) -> None:
        self.answer(200, json.dumps(value).encode(), Content_Type="application/json", **headers)


class CdnHandler(Handler):
    host = "cdn"

    def do_OPTIONS(self) -> None:
        self.note()
        self.answer(403)

    def do_GET(self) -> None:
        self.note()
        split = urlsplit(self.path)
        owner, name, path = unquote(split.path).lstrip("/").split("/", 2)
        if self.imitation.has_expired(split.query):
            return self.answer(403)
        data = self.imitation.repositories[f"{owner}/{name}"].files[path]
        asked = self.headers.get("Range") if self.imitation.ranges else None
        start, end = 0, len(data)
        if asked is not None:
            simple = SIMPLE_RANGE.fullmatch(asked)
            if simple is None or int(simple[1]) >= len(data):
                return self.answer(416)
            start = int(simple[1])
            end = min(int(simple[2]) + 1, len(data)) if simple[2] else len(data)
        self.send_response(200 if asked is None else 206)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Expose-Headers", EXPOSED)
        self.send_header("Content-Length", str(end - start))
        if asked is not None:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.end_headers()
        # A short range is the header's, which is read before the download.
        is_download = asked is None or asked.endswith("-")
        self.send(path if is_download else "", data[start:end])

    def send(self, path: str, data: bytes) -> None:
        fault, half = self.imitation.faults.get(path), len(data) // 2
        if fault == WRONG:
            data = data[:-1] + bytes([data[-1] ^ 1])
        if fault in (CUT, CUT_ONCE, CRUMBS):
            if fault == CUT_ONCE:
                del self.imitation.faults[path]
            self.pour(path, data[: CRUMB if fault == CRUMBS else half])
            self.close_connection = True
            return
        try:
            if fault == HELD:
                data = self.drip(path, data, half)
            self.pour(path, data)
        except OSError:
            self.close_connection = True  # whoever asked has gone
            self.imitation.left.set()

    def drip(self, path: str, data: bytes, at: int) -> bytes:
        """Send the first half at once, then a little now and then; return what is left."""
        self.pour(path, data[:at])
        while not self.imitation.go_on.wait(0.2) and at + 16 < len(data):
            self.pour(path, data[at : at + 16])
            at += 16
        return data[at:]

    def pour(self, path: str, data: bytes) -> None:
        self.wfile.write(data)
        self.imitation.sent[path] += len(data)


@contextmanager
def imitated() -> Iterator[Imitation]:
    imitation = Imitation()
    with ExitStack() as stack:
        addresses = []
        for base in (HubHandler, CdnHandler):
            handler = type(base.__name__, (base,), {"imitation": imitation})
            server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
            server.daemon_threads = True
            addresses.append(stack.enter_context(answering(server)).rstrip("/"))
        imitation.hub, imitation.cdn = addresses
        try:
            yield imitation
        finally:
            imitation.go_on.set()
