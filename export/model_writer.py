"""The writer of model folders (docs/blob.md): streamed to the disk, and whole or not there."""

import errno
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from export.errors import ExportError
from export.new_folder import new_folder
from export.shard_plan import FilePlan, StoredTensor, plan_file, plan_shards
from py_runtime import __version__
from py_runtime.base.file_facts import FileFacts
from py_runtime.folder.layout import RESERVED_PREFIX, Constant, constants_of
from py_runtime.folder.manifest import (
    FORMAT,
    MANIFEST,
    PLAIN_NAME,
    VERSION,
    Manifest,
    Source,
)
from py_runtime.folder.on_disk import open_model_folder
from py_runtime.folder.strict_json import parse_strict_json
from py_runtime.program import INT32_MAX, INT32_MIN, Program
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import HOST_DTYPES

GRAPH = "graph.json"
GOLDENS = "goldens.safetensors"
WEIGHTS_PREFIX = "weights-"
DEFAULT_SHARD_SIZE = 128_000_000
CHUNK = 4 << 20  # bytes between two words of progress

ConstantSource = np.ndarray | Callable[[], np.ndarray]
Progress = Callable[[int, int], None]  # (bytes done, bytes in all)
BytesOf = Callable[[str], memoryview]  # a tensor's row-major data


@dataclass(frozen=True)
class ModelFacts:
    """The facts that the manifest states about a model besides its files."""

    name: str
    parameters: int
    context: int  # most positions
    gpu_bytes: int  # at full context
    max_buffer_size: int  # the largest buffer the engine makes
    max_storage_buffer_binding_size: int  # the largest it binds
    source: Source
    quantisation: str
    features: tuple[str, ...] = ()
    cache_bytes: int = 0  # of gpu_bytes, what caches of keys and values take as floats


def write_model(
    folder: Path,
    program: Program,
    constants: Mapping[str, ConstantSource],
    facts: ModelFacts,
    files: Mapping[str, bytes],
    goldens: Mapping[str, np.ndarray] | None = None,
    shard_size: int = DEFAULT_SHARD_SIZE,
    progress: Progress = lambda done, total: None,
) -> Manifest:
    """Write the folder, or raise and leave what was there.

    `files` are config.json, tokenizer.json and the like, written as given. A constant may be a
    function that makes its array: one such array is held at a time.
    """
    folder = Path(folder).resolve()
    wanted = constants_of(program)
    _check_constants(wanted, constants)
    _check_file_names(files)
    small_files = {GRAPH: dump_program(program).encode(), **files}
    shards = _plan_weights(wanted, shard_size)
    golden_files = _plan_goldens(goldens or {})
    total = sum(map(len, small_files.values()))
    total += sum(plan.size for plan in (*shards.values(), *golden_files.values()))
    with _explain_disk_faults(folder, total), new_folder(folder, is_model_folder) as partial:
        out = _Output(partial, total, progress)
        for name, data in small_files.items():
            with out.file(name) as file:
                file.write(data)
        weights = _ConstantBytes(wanted, constants)
        for name, plan in shards.items():
            _write_tensors(out, name, plan, weights.bytes_of)
        for name, plan in golden_files.items():
            _write_tensors(out, name, plan, lambda golden: _flat_bytes((goldens or {})[golden]))
        manifest = _manifest(facts, list(shards), next(iter(golden_files), None), out.files)
        # Last of all: a folder without it is not a model.
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        return open_model_folder(partial).manifest  # what the reader refuses is not published


def is_model_folder(folder: Path) -> bool:
    """Return whether an exporter, of whatever version, wrote the folder."""
    try:
        manifest = parse_strict_json((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT


# What is given -----------------------------------------------------------------------------------


def _check_constants(
    wanted: Mapping[str, Constant], constants: Mapping[str, ConstantSource]
) -> None:
    missing = [name for name in wanted if name not in constants]
    if missing:
        raise ExportError(f"the graph's constants {', '.join(missing)} were not given")


def _check_file_names(files: Mapping[str, bytes]) -> None:
    for name in files:
        taken = name in (MANIFEST, GRAPH, GOLDENS) or name.startswith(WEIGHTS_PREFIX)
        if taken or not PLAIN_NAME.fullmatch(name):
            raise ExportError(f"a model folder cannot hold a further file named {name!r}")


class _ConstantBytes:
    """The graph's constants as the files hold them; the last one is kept, as it may be in pieces.

    Nothing else may keep an array while the next is made: it may be the largest thing in memory.
    """

    def __init__(
        self, wanted: Mapping[str, Constant], constants: Mapping[str, ConstantSource]
    ) -> None:
        self._wanted = wanted
        self._constants = constants
        self._last: dict[str, memoryview] = {}

    def bytes_of(self, name: str) -> memoryview:
        if name not in self._last:
            self._last.clear()
            self._last[name] = _flat_bytes(self._stored(name))
        return self._last[name]

    def _stored(self, name: str) -> np.ndarray:
        constant, source = self._wanted[name], self._constants[name]
        try:
            array = source() if callable(source) else source
        except OSError as error:
            raise ExportError(f"the constant '{name}' cannot be read: {error}") from None
        is_expected = array.dtype in (constant.dtype.host, constant.dtype.gpu)
        if not is_expected or array.shape != constant.dims:
            raise ExportError(
                f"the constant '{name}' is {array.dtype} {list(array.shape)}, but the graph's is "
                f"{constant}"
            )
        if array.dtype == np.int64:
            _check_int32(name, array)
        return array.astype(constant.dtype.gpu, copy=False)


def _check_int32(name: str, array: np.ndarray) -> None:
    for extreme in (int(array.min()), int(array.max())):
        if not INT32_MIN <= extreme <= INT32_MAX:
            raise ExportError(
                f"the constant '{name}' holds {extreme}, which does not fit the GPU's int32"
            )


def _flat_bytes(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


# Where it goes -----------------------------------------------------------------------------------


def _plan_weights(wanted: Mapping[str, Constant], shard_size: int) -> dict[str, FilePlan]:
    tensors = (StoredTensor(name, item.stored, item.dims) for name, item in wanted.items())
    plans = plan_shards(tensors, shard_size)
    return {
        f"{WEIGHTS_PREFIX}{number:05}-of-{len(plans):05}.safetensors": plan
        for number, plan in enumerate(plans, start=1)
    }


def _plan_goldens(goldens: Mapping[str, np.ndarray]) -> dict[str, FilePlan]:
    tensors = []
    for name, array in goldens.items():
        if not name or name.startswith(RESERVED_PREFIX) or array.dtype not in HOST_DTYPES:
            raise ExportError(f"a model folder cannot hold the golden {name!r} of {array.dtype}")
        tensors.append(StoredTensor(name, HOST_DTYPES[array.dtype], array.shape))
    return {GOLDENS: plan_file(tensors)} if tensors else {}


# Writing -----------------------------------------------------------------------------------------


class _Output:
    """The files of a folder: their sizes and hashes, and how far the writing has come."""

    def __init__(self, folder: Path, total: int, progress: Progress) -> None:
        self.files: dict[str, FileFacts] = {}
        self._folder = folder
        self._total = total
        self._progress = progress
        self._done = 0

    @contextmanager
    def file(self, name: str) -> Iterator["_HashedFile"]:
        with (self._folder / name).open("xb") as stream:
            file = _HashedFile(stream, self._count)
            yield file
        self.files[name] = FileFacts(file.size, file.sha256.hexdigest())

    def _count(self, nbytes: int) -> None:
        self._done += nbytes
        self._progress(self._done, self._total)


class _HashedFile:
    def __init__(self, stream: BinaryIO, count: Callable[[int], None]) -> None:
        self.size = 0
        self.sha256 = hashlib.sha256()
        self._stream = stream
        self._count = count

    def write(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        for begin in range(0, len(view), CHUNK):
            chunk = view[begin : begin + CHUNK]
            self._stream.write(chunk)
            self.sha256.update(chunk)
            self.size += len(chunk)
            self._count(len(chunk))


def _write_tensors(out: _Output, name: str, plan: FilePlan, bytes_of: BytesOf) -> None:
    with out.file(name) as file:
        file.write(plan.header)
        for span in plan.spans:
            file.write(bytes_of(span.tensor)[span.begin : span.end])
            file.write(bytes(span.padding))


def _manifest(
    facts: ModelFacts, weights: list[str], goldens: str | None, files: Mapping[str, FileFacts]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": facts.name,
        "parameters": facts.parameters,
        "context": facts.context,
        "size": sum(file.size for file in files.values()),
        "gpu_bytes": facts.gpu_bytes,
        "cache_bytes": facts.cache_bytes,
        "quantisation": facts.quantisation,
        "graph": GRAPH,
        "weights": weights,
        "goldens": goldens,
        "files": {name: asdict(file) for name, file in files.items()},
        "requires": {
            "features": list(facts.features),
            "limits": {
                "max_buffer_size": facts.max_buffer_size,
                "max_storage_buffer_binding_size": facts.max_storage_buffer_binding_size,
            },
        },
        "source": asdict(facts.source),
        "created_by": f"inpage {__version__}",
    }


@contextmanager
def _explain_disk_faults(folder: Path, total: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ExportError(
                f"the disk is full: {folder} needs {total} bytes; free some space or choose "
                "another folder"
            ) from None
        reason = error.strerror or error
        raise ExportError(f"{folder} cannot be written: {reason}; choose another folder") from None
