"""The addresses of models on the Hub: `hf:owner/name`, `hf:owner/name/file.gguf@revision`."""

import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote, urlsplit

from py_runtime.base.errors import RequestError
from py_runtime.base.platform import IN_PAGE
from py_runtime.base.short_texts import short
from py_runtime.folder.file_names import GGUF

PREFIX = "hf:"
HUB = "https://huggingface.co"
HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co")
MAIN = "main"
PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")  # an owner, or a name
REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
COMMIT = re.compile(r"[0-9a-f]{40}")
MAX_PATH = 512
VIEWS = ("tree", "blob", "resolve", "raw")  # of a page's address, before the revision


@dataclass(frozen=True)
class HubAddress:
    """An address; `file` is a path below the repository, a revision a branch, tag or commit."""

    owner: str
    name: str
    file: str | None = None
    revision: str | None = None

    @property
    def repository(self) -> str:
        return f"{self.owner}/{self.name}"

    def __str__(self) -> str:
        file = f"/{self.file}" if self.file else ""
        revision = f"@{self.revision}" if self.revision else ""
        return f"{PREFIX}{self.repository}{file}{revision}"

    def pinned(self, file: str, commit: str) -> "HubAddress":
        return replace(self, file=file, revision=commit)


def is_hub_address(where: object) -> bool:
    """Return whether what load() is given is an address on the Hub."""
    return isinstance(where, str) and where.startswith(PREFIX)


def leads_to_hub(where: str) -> bool:
    """Return whether this leads to the Hub, natively also as the address of a page there."""
    return is_hub_address(where) or (is_address(where) and urlsplit(where).hostname in HOSTS)


def is_address(where: str) -> bool:
    """Return whether this is an address and not a path; never in the page, which knows no paths."""
    return not IN_PAGE and where.startswith(("https://", "http://"))


def parse_address(text: str) -> HubAddress:
    """Parse an address with or without `hf:`, or that of a page; raise RequestError."""
    plain = text.strip()
    if plain.startswith(PREFIX):
        return _check_parts(text, *_split_revision(plain.removeprefix(PREFIX)))
    split = urlsplit(plain)
    if split.scheme in ("http", "https"):
        if split.hostname not in HOSTS:
            raise _unusable(text, f"{split.hostname} is not the Hugging Face Hub")
        return _parse_page(text, unquote(split.path))
    host, _, path = plain.partition("/")
    if host in HOSTS:
        return _parse_page(text, path)
    return _check_parts(text, *_split_revision(plain))


def quote_path(path: str) -> str:
    """Return a file's path or a revision as a part of an address."""
    return quote(path)


def _split_revision(text: str) -> tuple[str, str | None]:
    path, at, revision = text.rpartition("@")
    return (path, revision) if at else (text, None)


def _parse_page(text: str, path: str) -> HubAddress:
    parts = path.strip("/").split("/")
    if len(parts) > 3 and parts[2] in VIEWS:
        file = parts[4:] if parts[-1].lower().endswith(GGUF) else []
        return _check_parts(text, "/".join([*parts[:2], *file]), parts[3])
    return _check_parts(text, "/".join(parts), None)


def _check_parts(text: str, path: str, revision: str | None) -> HubAddress:
    owner, _, rest = path.partition("/")
    name, _, file = rest.partition("/")
    if not (PART.fullmatch(owner) and PART.fullmatch(name)):
        raise _unusable(text, "a model on the Hub is named owner/name")
    if file and not is_plain_path(file):
        raise _unusable(text, f"{short(file)} is not the path of a {GGUF} file")
    if revision is not None and not REVISION.fullmatch(revision):
        raise _unusable(text, f"{short(revision)} is not a branch, a tag or a commit")
    return HubAddress(owner, name, file or None, revision)


def is_repository(name: str) -> bool:
    """Return whether this names a repository: owner/name."""
    return all(map(PART.fullmatch, parts)) if len(parts := name.split("/")) == 2 else False


def is_plain_path(path: str) -> bool:
    """Return whether this is a GGUF file's path: no way up, nothing that a terminal heeds."""
    steps = path.split("/")
    return (
        path.lower().endswith(GGUF)
        and len(path) <= MAX_PATH
        and path.isprintable()
        and "\\" not in path
        and all(step.strip() and not step.startswith(".") for step in steps)
    )


def _unusable(text: str, why: str) -> RequestError:
    return RequestError(
        f"no model found at {short(text)}: {why}; write owner/name, or "
        f"{PREFIX}owner/name/file.gguf@revision",
        "name_or_url",
    )
