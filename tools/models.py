"""The folder of models: which of its files are served, and what models.json says of each model.

A model comes from a stranger, and its folder has the page's origin: only the files that a model is
made of are handed out, and none of them as something that a browser would run.
"""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from py_runtime.base.model_errors import ModelError, ModelFileError
from py_runtime.encoder.config import is_encoder
from py_runtime.encoder.encoding import (
    MODULES,
    POOLING_CONFIG,
    SETTINGS,
    dense_folders,
    pooling_folder,
)
from py_runtime.folder.file_names import (
    CONFIG,
    GGUF,
    MODEL_PTE,
    PTD,
    SAFETENSORS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    VOCABULARY,
)
from py_runtime.folder.manifest import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    NEEDED_LIMITS,
    Manifest,
    parse_manifest,
)
from py_runtime.folder.strict_json import parse_strict_json
from py_runtime.gguf.part_names import is_first_part, model_name, parts_of
from tools.errors import UserError
from tools.files import is_plain_name, plain_file

FOLDER = "models"  # in URLs
MEDIA_TYPE = "application/octet-stream"
# A document from there would have neither scripts nor the page's origin.
HEADERS = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox"}
# Fields of a manifest that models.json repeats: the page lists a model before it loads it.
MANIFEST_FIELDS = ("size", "parameters", "context", "quantisation", "gpu_bytes")
# Endings before the last one name a size or a quantisation: no host takes those for anything.
_MIDDLE = r"\.(?:[A-Za-z0-9]*[-_][A-Za-z0-9_-]*|[0-9]+|B?F(?:16|32))"
GGUF_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_-]{{0,127}}(?:{_MIDDLE}){{0,4}}\.gguf")
PTE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}\.pte")  # see manifest.PLAIN_NAME
BESIDE_A_PTE = (TOKENIZER, TOKENIZER_CONFIG, CONFIG)
OF_AN_ENCODER = (SAFETENSORS, VOCABULARY, MODULES, SETTINGS, *BESIDE_A_PTE)  # its checkpoint


class ModelsError(UserError):
    """An error of a folder of models that cannot be read."""


class Models:
    """The folders of models, and which of their files are served; without a root there are none."""

    def __init__(self, root: Path | None) -> None:
        self.root = root.resolve() if root else None

    def find(self, name: str, file: str) -> Path | None:
        """Find a file of the model `name`; None where nothing is served."""
        if self.root is None or not is_plain_name(name):
            return None
        folder = self.root / name
        return folder / file if is_model(folder) and file in served_names(folder) else None

    def find_inner(self, name: str, inner: str, file: str) -> Path | None:
        """Find a file of the encoder `name` in a folder that its modules.json names."""
        if self.root is None or not is_plain_name(name):
            return None
        folder = self.root / name
        return plain_file(folder, [inner, file]) if (inner, file) in inner_names(folder) else None

    def files(self) -> Iterator[tuple[str, str]]:
        """Every (name, file) that find() has, and (name, inner/file) that find_inner() has."""
        for folder in self._folders():
            if is_plain_name(folder.name):
                yield from ((folder.name, file) for file in served_files(folder))
                for inner, file in inner_names(folder):
                    if plain_file(folder, [inner, file]):
                        yield folder.name, f"{inner}/{file}"

    def find_lone(self, file: str) -> Path | None:
        """Find a GGUF file that lies beside the folders; None where nothing is served."""
        if self.root is None or not GGUF_NAME.fullmatch(file):
            return None
        return plain_file(self.root, [file])

    def lone_files(self) -> list[str]:
        """Every file that find_lone() has."""
        return [name for name in self._names() if self.find_lone(name)]

    def listing(self) -> list[dict[str, Any]]:
        """models.json: each model, or its name with its fault."""
        ggufs = [name for name in self._names() if name.lower().endswith(GGUF)]
        first_parts = filter(is_first_part, ggufs)
        return [
            *(entry_of(folder) for folder in self._folders()),
            *(self._lone_entry(name) for name in first_parts),
        ]

    def _lone_entry(self, name: str) -> dict[str, Any]:
        """Describe a GGUF for models.json; the engine finds out what is in it."""
        entry = {
            "name": escape_name(model_name(name)),
            "path": f"{FOLDER}/{quote(os.fsencode(name))}",
        }
        size = 0
        for part in parts_of(name):
            path = self.find_lone(part)
            try:
                size += path.stat().st_size if path else 0
            except OSError:
                path = None  # it went away
            if path is None:
                fault = (
                    f"{escape_name(part)} is missing, unreadable, a link, or named in a way that "
                )
                return {**entry, "error": f"{fault}no GGUF file is; put it here, or rename it"}
        return {**entry, "size": size}

    def _folders(self) -> list[Path]:
        """Return the folders that look like a model to a person, even if they cannot be served."""
        return [
            self.root / name
            for name in self._names()
            if self.root is not None
            and (
                any(os.path.lexists(self.root / name / file) for file in (MANIFEST, MODEL_PTE))
                or is_checkpoint(self.root / name)
            )
        ]

    def _names(self) -> list[str]:
        """Return the names of all that lies in the root and is not hidden."""
        try:
            names = sorted(path.name for path in self.root.iterdir()) if self.root else []
        except OSError as error:
            raise ModelsError(
                f"the folder of models cannot be read: {self.root}: {error.strerror}"
            ) from None
        return [name for name in names if not name.startswith(".")]


def is_model(folder: Path) -> bool:
    """Return whether the folder has a model's files, sound or not."""
    return any(plain_file(folder, [file]) for file in (MANIFEST, MODEL_PTE)) or is_checkpoint(
        folder
    )


def is_checkpoint(folder: Path) -> bool:
    """Return whether the folder has a text encoder's checkpoint; a manifest would come first."""
    config = read_small_json(folder, [CONFIG])
    return (
        isinstance(config, dict)
        and is_encoder(config)
        and plain_file(folder, [SAFETENSORS]) is not None
        and not any(os.path.lexists(folder / file) for file in (MANIFEST, MODEL_PTE))
    )


def inner_names(folder: Path) -> list[tuple[str, str]]:
    """List what an encoder's folders may hold: how it pools, and the products behind that."""
    if not is_checkpoint(folder):
        return []
    modules = read_small_json(folder, [MODULES])
    try:
        pooling, products = pooling_folder(modules), dense_folders(modules)
    except ModelError:  # the engine says why
        return []
    return [
        *([(pooling, POOLING_CONFIG)] if pooling else ()),
        *((inner, file) for inner in products for file in (POOLING_CONFIG, SAFETENSORS)),
    ]


def read_small_json(folder: Path, parts: list[str]) -> Any:
    """Return a parsed file; None where it is not there, or is anything else."""
    path = plain_file(folder, parts)
    try:
        if path is None or path.stat().st_size > MAX_MANIFEST_BYTES:
            return None
        return parse_strict_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def served_files(folder: Path) -> list[str]:
    """Return the files that are there and may be served, in order."""
    return sorted(name for name in served_names(folder) if plain_file(folder, [name]))


def served_names(folder: Path) -> set[str]:
    """Return the manifest and what it lists; programs and checkpoints with what is beside them."""
    try:
        programs = {path.name for path in folder.iterdir() if PTE_NAME.fullmatch(path.name)}
    except OSError:
        return set()
    data = {Path(program).stem + PTD for program in programs}
    try:
        listed = read_manifest(folder).files.keys()
    except ModelError:  # its entry says why
        listed = {}.keys()
    beside = BESIDE_A_PTE if programs else ()
    checkpoint = OF_AN_ENCODER if is_checkpoint(folder) else ()
    return {MANIFEST, *programs, *data, *beside, *checkpoint, *listed}


def entry_of(folder: Path) -> dict[str, Any]:
    """Describe a model for models.json; `error` says why one cannot be loaded."""
    entry = {
        "name": escape_name(folder.name),
        "path": f"{FOLDER}/{quote(os.fsencode(folder.name))}/",
    }
    try:
        check_place(folder)
        if is_checkpoint(folder):
            return {**entry, "size": (folder / SAFETENSORS).stat().st_size}
        program = plain_file(folder, [MODEL_PTE])
        if program and not os.path.lexists(folder / MANIFEST):
            return {**entry, "path": entry["path"] + MODEL_PTE, "size": program.stat().st_size}
        manifest = read_manifest(folder)
        check_files(folder, manifest)
    except ModelError as error:
        return {**entry, "error": str(error)}
    except OSError as error:
        return {**entry, "error": f"its folder cannot be read: {error.strerror}"}
    largest = max(manifest.requires.limits.get(name, 0) for name in NEEDED_LIMITS)
    facts = {field: getattr(manifest, field) for field in MANIFEST_FIELDS}
    return {**entry, **facts, "largest_buffer": largest}


def check_place(folder: Path) -> None:
    """ModelFileError where the server does not look into the folder at all."""
    if folder.is_symlink():
        raise ModelFileError(
            "it is a link, and those are not followed", "put the folder itself here"
        )
    if not is_plain_name(folder.name):
        raise ModelFileError(
            "its folder's name has a character that no address should", "rename it"
        )


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest; ModelError speaks in the words of the engine that would load it."""
    path = plain_file(folder, [MANIFEST])
    if path is None:
        raise ModelFileError(f"{MANIFEST} is missing, unreadable or a link")
    try:
        status = path.stat()
        return remembered_manifest(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise ModelFileError(f"{MANIFEST} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=256)
def remembered_manifest(path: Path, size: int, mtime_ns: int) -> Manifest:
    """Read again only when the file's size or time is another."""
    with path.open("rb") as file:
        return parse_manifest(file.read(MAX_MANIFEST_BYTES + 1))


def check_files(folder: Path, manifest: Manifest) -> None:
    """ModelFileError for the first file that is not there, or not of its size."""
    for name in manifest.files:
        path = plain_file(folder, [name])
        if path is None:
            raise ModelFileError(f"{name} is missing, unreadable or a link")
        manifest.check_size(name, path.stat().st_size)


def escape_name(name: str) -> str:
    """Return a file's name as text; bytes that are not text are escaped."""
    return name.encode(errors="backslashreplace").decode()
