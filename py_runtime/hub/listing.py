"""The Hub's description of a repository, read without trust: commit, files and their hashes."""

import re
from dataclasses import dataclass
from typing import Any

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.short_texts import short
from py_runtime.folder.manifest import SHA256
from py_runtime.folder.strict_json import is_count, parse_strict_json
from py_runtime.hub.address import COMMIT, is_plain_path, is_repository
from py_runtime.hub.errors import HubError

LICENCE = "license:"  # what a tag begins with
NEXT_PAGE = re.compile(r'<([^<>]+)>;\s*rel="next"')
MAX_TAG = 64


@dataclass(frozen=True)
class HubFile:
    """A GGUF file, and what its bytes must be."""

    path: str
    size: int
    sha256: str

    @property
    def facts(self) -> FileFacts:
        return FileFacts(self.size, self.sha256)


@dataclass(frozen=True)
class Repository:
    """A repository at one commit."""

    name: str  # owner/name
    commit: str
    licence: str
    gated: bool
    files: tuple[HubFile, ...]


@dataclass(frozen=True)
class FoundRepository:
    """A repository that a search has found."""

    name: str  # owner/name
    downloads: int  # of the last 30 days
    licence: str
    gated: bool
    parameters: int  # of the model; 0 where the Hub does not tell


def parse_about(name: str, data: bytes) -> tuple[str, str, bool]:
    """Return (commit, licence, whether it is gated) from the answer about a model."""
    about = _parsed(name, data, dict)
    commit = about.get("sha")
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
        raise _odd(name, f"its commit is {short(commit)}")
    return commit, _licence(about.get("tags")), bool(about.get("gated"))


def parse_tree(name: str, data: bytes) -> list[HubFile]:
    """Return the GGUF files of one page of the tree; others are passed over."""
    files = []
    for entry in _parsed(name, data, list):
        if not isinstance(entry, dict) or entry.get("type") != "file":
            continue
        path = entry.get("path")
        if isinstance(path, str) and is_plain_path(path):
            files.append(_file(name, path, entry.get("lfs")))
    return files


def parse_found(words: str, data: bytes) -> list[FoundRepository]:
    """Return the repositories that a search has found; those with odd names are passed over."""
    found = []
    for entry in _parsed(words, data, list):
        name = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not is_repository(name):
            continue
        downloads, gguf = entry.get("downloads"), entry.get("gguf")
        parameters = gguf.get("total") if isinstance(gguf, dict) else None
        found.append(
            FoundRepository(
                name,
                downloads if is_count(downloads) else 0,
                _licence(entry.get("tags")),
                bool(entry.get("gated")),
                parameters if is_count(parameters) else 0,
            )
        )
    return found


def next_page(headers: dict[str, str]) -> str | None:
    """Return the address where the tree goes on, if it does."""
    found = NEXT_PAGE.search(headers.get("link", ""))
    return found[1] if found else None


def _licence(tags: Any) -> str:
    texts = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    licences = [tag.removeprefix(LICENCE)[:MAX_TAG] for tag in texts if tag.startswith(LICENCE)]
    return licences[0] if licences else "unknown"


def _file(name: str, path: str, lfs: Any) -> HubFile:
    facts = lfs if isinstance(lfs, dict) else {}
    sha256, size = facts.get("oid"), facts.get("size")
    if not isinstance(sha256, str) or not SHA256.fullmatch(sha256) or not is_count(size):
        raise _odd(name, f"it tells no sha256 and size of {short(path)}")
    return HubFile(path, size, sha256)


def _parsed(name: str, data: bytes, kind: type) -> Any:
    try:
        found = parse_strict_json(data)
    except ValueError as error:
        raise _odd(name, str(error)) from None
    if not isinstance(found, kind):
        raise _odd(name, f"it is {short(found)}")
    return found


def _odd(name: str, why: str) -> HubError:
    return HubError(f"what the Hub says of {name} cannot be used: {why}; try again later")
