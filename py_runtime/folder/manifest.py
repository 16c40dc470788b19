"""The manifest.json of a model folder, read without trust: what it holds and what it needs."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import (
    ManifestError,
    ModelFileError,
    ModelHashError,
    ModelVersionError,
)
from py_runtime.base.short_texts import short
from py_runtime.base.sizes import in_words
from py_runtime.folder.strict_json import is_count, parse_strict_json

MANIFEST = "manifest.json"
FORMAT = "inpage-model"
VERSION = 1
MAX_MANIFEST_BYTES = 1 << 20
MAX_WHOLE_BYTES = 64 << 20  # of all files but the weights: those are read whole
# One step down a folder on every system, and one part of a URL without escapes. Of two endings a
# host may heed the first, so there is one, which no browser runs.
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}\.(json|safetensors)")
SHA256 = re.compile(r"[0-9a-f]{64}")
WEB_ADDRESS = re.compile(r"https?://\S+")  # the page links to it: no other scheme may get there
NEEDED_LIMITS = ("max_buffer_size", "max_storage_buffer_binding_size")

Load = Callable[[str, Any], Any]  # (where it stands, data) → the checked value


@dataclass(frozen=True)
class Source:
    """The origin of the weights."""

    name: str
    url: str | None
    licence: str


@dataclass(frozen=True)
class Requirements:
    """The WebGPU features that a device must offer, and limits under Device.limits' names."""

    features: tuple[str, ...]
    limits: dict[str, int]


@dataclass(frozen=True)
class Manifest:
    """A manifest.json that was checked; docs/blob.md says what each field means."""

    name: str
    parameters: int
    context: int  # most positions
    size: int  # bytes of all files
    gpu_bytes: int  # that the graph holds at full context
    quantisation: str
    graph: str  # file names
    weights: tuple[str, ...]
    goldens: str | None
    files: dict[str, FileFacts]
    requires: Requirements
    source: Source
    created_by: str
    cache_bytes: int = 0  # of those, what caches of keys and values take as floats

    @property
    def least_gpu_bytes(self) -> int:
        """Return what the graph holds at full context where its caches take least."""
        from py_runtime.base.dtypes import F32, Q4  # numpy, which a server of manifests is without

        return self.gpu_bytes - self.cache_bytes + Q4.bytes_of(self.cache_bytes // F32.gpu_bytes)

    def check_size(self, file: str, size: int) -> None:
        if file not in self.files:
            raise ModelFileError(f"{MANIFEST}.files has no '{file}'")
        wanted = self.files[file].size
        if size != wanted:
            raise ModelFileError(f"{file} has {size} bytes, but the manifest says {wanted}")

    def check_sha256(self, file: str, sha256: str) -> None:
        wanted = self.files[file].sha256
        if sha256 != wanted:
            raise ModelHashError(
                f"{file} is not the file that was exported: its sha256 is {sha256}, but the "
                f"manifest says {wanted}"
            )

    def check_file(self, file: str, data: bytes) -> None:
        """Check that these are the whole file's bytes."""
        self.check_size(file, len(data))
        self.check_sha256(file, hashlib.sha256(data).hexdigest())


def parse_manifest(data: bytes) -> Manifest:
    """Parse a manifest; raise ManifestError with the name of the field that is wrong."""
    if len(data) > MAX_MANIFEST_BYTES:
        raise ManifestError(f"{MANIFEST} has {len(data)} bytes; at most {MAX_MANIFEST_BYTES}")
    try:
        root = parse_strict_json(data)
    except ValueError as error:
        raise ManifestError(f"{MANIFEST} is not JSON: {error}") from None
    _check_version(root)
    get = _getter(MANIFEST, root)
    manifest = Manifest(
        name=get("name", _text),
        parameters=get("parameters", _count),
        context=get("context", _count),
        size=get("size", _count),
        gpu_bytes=get("gpu_bytes", _count),
        quantisation=get("quantisation", _text),
        graph=get("graph", _file_name),
        weights=get("weights", _list_of(_file_name)),
        goldens=get("goldens", _or_null(_file_name)),
        files=get("files", _files),
        requires=get("requires", _requirements),
        source=get("source", _source),
        created_by=get("created_by", _text),
        cache_bytes=get("cache_bytes", _count) if "cache_bytes" in root else 0,
    )
    _check_files(manifest)
    return manifest


def _check_version(root: Any) -> None:
    get = _getter(MANIFEST, root)
    if get("format", _text) != FORMAT:
        raise ModelVersionError(
            f"{MANIFEST} is of format {short(root['format'])}, not '{FORMAT}'",
            "use a folder that inpage export wrote",
        )
    version = get("version", _count)
    if version != VERSION:
        advice = "update inpage" if version > VERSION else "export the model again"
        raise ModelVersionError(
            f"{MANIFEST} is of format version {version}; this engine reads version {VERSION}",
            advice,
        )


def _check_files(manifest: Manifest) -> None:
    if MANIFEST in manifest.files:
        raise ManifestError(f"{MANIFEST}.files lists the manifest itself")
    weights = set(manifest.weights)
    if len(weights) != len(manifest.weights):
        raise ManifestError(f"{MANIFEST}.weights names a file twice")
    goldens = () if manifest.goldens is None else (manifest.goldens,)
    for file in (manifest.graph, *manifest.weights, *goldens):
        if file not in manifest.files:
            raise ManifestError(f"{MANIFEST}.files has no '{file}'")
    whole = sum(f.size for name, f in manifest.files.items() if name not in weights)
    if whole > MAX_WHOLE_BYTES:
        raise ManifestError(
            f"{MANIFEST}.files has {in_words(whole)} beside the weights; at most "
            f"{in_words(MAX_WHOLE_BYTES)} are read"
        )
    total = sum(facts.size for facts in manifest.files.values())
    if total != manifest.size:
        raise ManifestError(
            f"{MANIFEST}.size is {manifest.size}, but the files take {total} bytes together"
        )


# Kinds of values ---------------------------------------------------------------------------------


def _getter(where: str, data: Any) -> Callable[[str, Load], Any]:
    """Return get(key, load), which returns a member of an object, checked by `load`."""
    if not isinstance(data, dict):
        raise ManifestError(f"{where} must be an object, got {short(data)}")

    def get(key: str, load: Load) -> Any:
        if key not in data:
            raise ManifestError(f"{where} has no '{key}'")
        return load(f"{where}.{key}", data[key])

    return get


def _text(where: str, data: Any) -> str:
    if not isinstance(data, str) or not data:
        raise ManifestError(f"{where} must be a text, got {short(data)}")
    return data


def _count(where: str, data: Any) -> int:
    if not is_count(data):
        raise ManifestError(f"{where} must be an integer from 0 to 2^53 - 1, got {short(data)}")
    return data


def _file_name(where: str, data: Any) -> str:
    if not isinstance(data, str) or not PLAIN_NAME.fullmatch(data):
        raise ManifestError(
            f"{where} must be a plain .json or .safetensors name, got {short(data)}"
        )
    return data


def _sha256(where: str, data: Any) -> str:
    if not isinstance(data, str) or not SHA256.fullmatch(data):
        raise ManifestError(f"{where} must be 64 lower-case hex digits, got {short(data)}")
    return data


def _web_address(where: str, data: Any) -> str:
    if not isinstance(data, str) or not WEB_ADDRESS.fullmatch(data):
        raise ManifestError(f"{where} must be an http or https address, got {short(data)}")
    return data


def _or_null(load: Load) -> Load:
    return lambda where, data: None if data is None else load(where, data)


def _list_of(load: Load) -> Load:
    def load_list(where: str, data: Any) -> tuple[Any, ...]:
        if not isinstance(data, list):
            raise ManifestError(f"{where} must be a list, got {short(data)}")
        return tuple(load(f"{where}[{at}]", item) for at, item in enumerate(data))

    return load_list


def _files(where: str, data: Any) -> dict[str, FileFacts]:
    get = _getter(where, data)
    return {_file_name(f"a key of {where}", name): get(name, _file_facts) for name in data}


def _file_facts(where: str, data: Any) -> FileFacts:
    get = _getter(where, data)
    return FileFacts(get("size", _count), get("sha256", _sha256))


def _requirements(where: str, data: Any) -> Requirements:
    get = _getter(where, data)
    return Requirements(get("features", _list_of(_text)), get("limits", _limits))


def _limits(where: str, data: Any) -> dict[str, int]:
    get = _getter(where, data)
    return {name: get(name, _count) for name in (*NEEDED_LIMITS, *data)}


def _source(where: str, data: Any) -> Source:
    get = _getter(where, data)
    return Source(get("name", _text), get("url", _or_null(_web_address)), get("licence", _text))
