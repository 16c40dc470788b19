"""A model in files without a manifest of their own, as it is kept under an address."""

import json
from dataclasses import dataclass, field
from typing import Any

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ManifestError
from py_runtime.base.short_texts import short
from py_runtime.folder.manifest import SHA256
from py_runtime.folder.strict_json import is_count, parse_strict_json


@dataclass(frozen=True)
class FileSet:
    """GGUF files by name, in order; `notes` are texts that whoever kept them wants back."""

    name: str
    files: dict[str, FileFacts]
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(facts.size for facts in self.files.values())

    def to_json(self) -> bytes:
        files = {name: [facts.size, facts.sha256] for name, facts in self.files.items()}
        return json.dumps({"name": self.name, "files": files, "notes": self.notes}).encode()


def parse_file_set(data: bytes) -> FileSet:
    """Parse what to_json() has written; raise ManifestError if it is anything else."""
    try:
        root = parse_strict_json(data)
    except ValueError as error:
        raise _unreadable(str(error)) from None
    if not isinstance(root, dict) or root.keys() != {"name", "files", "notes"}:
        raise _unreadable(short(root))
    name, files, notes = root["name"], root["files"], root["notes"]
    if not (isinstance(name, str) and isinstance(files, dict) and files and _are_texts(notes)):
        raise _unreadable(short(root))
    return FileSet(name, {file: _parse_facts(value) for file, value in files.items()}, notes)


def _parse_facts(value: Any) -> FileFacts:
    match value:
        case [int() as size, str() as sha256] if is_count(size) and SHA256.fullmatch(sha256):
            return FileFacts(size, sha256)
    raise _unreadable(short(value))


def _are_texts(notes: Any) -> bool:
    return isinstance(notes, dict) and all(isinstance(text, str) for text in notes.values())


def _unreadable(why: str) -> ManifestError:
    return ManifestError(f"what was kept of a model cannot be read: {why}")
