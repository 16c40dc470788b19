"""An adapter's files, wherever they lie: a folder of PEFT's, its two files, or a GGUF file."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from py_runtime.adapters.adapter import Adapter
from py_runtime.adapters.errors import AdapterError
from py_runtime.adapters.gguf import read_gguf_adapter
from py_runtime.adapters.peft import CONFIG, WEIGHTS, read_peft
from py_runtime.base.model_errors import DAMAGED, ModelError
from py_runtime.decoder.families import BY_MODEL_TYPE
from py_runtime.folder.plain_safetensors import header_end, parse_header
from py_runtime.folder.safetensors_header import LENGTH_BYTES
from py_runtime.gguf.container import MAGIC
from py_runtime.gguf.reader import open_gguf
from py_runtime.weights.byte_source import ByteSource
from py_runtime.weights.open_source import open_source

GGUF, SAFETENSORS = ".gguf", ".safetensors"
MAX_BYTES = 4 << 30
MAX_CONFIG_BYTES = 16 << 20
TAKEN = f"give a folder of PEFT's, its {SAFETENSORS} file, or a {GGUF} file of an adapter"
Files = Mapping[str, ByteSource]  # by name


class MemorySource:
    """A file whose bytes are at hand."""

    is_remote = False

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self._data = data

    async def size(self) -> int:
        return len(self._data)

    async def read(self, offset: int, nbytes: int) -> bytes:
        return self._data[offset : offset + nbytes]

    async def pieces(self, cuts: Sequence[int]) -> AsyncGenerator[tuple[int, np.ndarray], None]:
        for start, end in pairwise(cuts):
            yield start, np.frombuffer(self._data, np.uint8)[start:end]


def files_of(where: Any) -> tuple[str, Files]:
    """Return a name for an adapter, and its files.

    `where` is a path or an address, the bytes of a GGUF file, or files by name: sources or bytes.
    """
    if isinstance(where, bytes | bytearray):
        name = "adapter" + (GGUF if where[: len(MAGIC)] == MAGIC else SAFETENSORS)
        where = {name: where}
    if isinstance(where, Mapping):
        files = {
            name: MemorySource(name, bytes(each)) if isinstance(each, bytes | bytearray) else each
            for name, each in where.items()
        }
        first = next((name for name in files if name.endswith((GGUF, SAFETENSORS))), "adapter")
        return _name(first), files
    path = str(where).replace("\\", "/").rstrip("/")
    folder, _, file = path.rpartition("/")
    if file.lower().endswith(GGUF):
        return _name(file), {file: open_source(path)}
    if not file.endswith(SAFETENSORS):  # a folder
        folder, file = path, WEIGHTS
    named = folder.rpartition("/")[2] if file == WEIGHTS else file
    beside = f"{folder}/" if folder else ""
    paths = {CONFIG: f"{beside}{CONFIG}", file: f"{beside}{file}"}
    return _name(named or file), {name: open_source(each) for name, each in paths.items()}


def _name(file: str) -> str:
    name = Path(file).name
    for ending in (GGUF, SAFETENSORS):
        name = name.removesuffix(ending)
    return "adapter" if name in ("", "adapter_model") else name


async def read_adapter(files: Files, model_type: str, head_dim: int) -> Adapter:
    """Read an adapter for a model of this type, in config.json, with heads of this width."""
    try:
        return await _read(files, model_type, head_dim)
    except ModelError as error:  # of its files, with advice for those of models
        raise AdapterError(str(error).removesuffix(f"; {DAMAGED}"), TAKEN) from error


async def _read(files: Files, model_type: str, head_dim: int) -> Adapter:
    ggufs = [source for name, source in files.items() if name.lower().endswith(GGUF)]
    weights = [source for name, source in files.items() if name.endswith(SAFETENSORS)]
    if len(ggufs) + len(weights) != 1:
        raise AdapterError(
            f"{', '.join(files) or 'nothing'} was given as an adapter",
            f"give one {GGUF} file, or {WEIGHTS} with {CONFIG} beside it",
        )
    if ggufs:
        return await read_gguf_adapter(await open_gguf(ggufs), head_dim)
    if CONFIG not in files:
        raise AdapterError(
            f"{weights[0].name} was given without {CONFIG}", "give both files together"
        )
    family = BY_MODEL_TYPE.get(model_type)
    config = await _whole(files[CONFIG], MAX_CONFIG_BYTES)
    return read_peft(config, await _tensors(weights[0]), family, weights[0].name)


async def _tensors(source: ByteSource) -> bytes:
    """Return all of a file, once its header says that so much is to come."""
    size = await source.size()
    start = await source.read(0, min(size, LENGTH_BYTES))
    end = header_end(source.name, start, size)
    parse_header(source.name, await source.read(0, end), size)
    return await _whole(source, MAX_BYTES)


async def _whole(source: ByteSource, most: int) -> bytes:
    size = await source.size()
    if size > most:
        raise AdapterError(f"{source.name} has {size} bytes, which is too large for an adapter")
    return await source.read(0, size)
