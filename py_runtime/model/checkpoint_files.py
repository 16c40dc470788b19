"""The files of a checkpoint as people publish it, and the places of the tensors in them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from py_runtime.base.model_errors import ModelError, ModelFileError
from py_runtime.base.sizes import in_words
from py_runtime.folder.manifest import MAX_WHOLE_BYTES
from py_runtime.folder.plain_safetensors import header_end, parse_header
from py_runtime.folder.safetensors_header import LENGTH_BYTES
from py_runtime.folder.strict_json import parse_strict_json
from py_runtime.gguf.container import TensorInfo
from py_runtime.gguf.dequantise import dequantise
from py_runtime.gguf.reader import StoredTensor
from py_runtime.gguf.stored_weights import FLOATS
from py_runtime.gguf.tensor_types import BY_NAME
from py_runtime.weights.byte_source import ABSENT, ByteSource

ANOTHER = "get another copy of the model"


class CheckpointFiles:
    """The files of one checkpoint; `find` gives the source of a file, which need not be there."""

    def __init__(self, find: Callable[[str], ByteSource]) -> None:
        self.find = find

    async def read_json(self, file: str) -> Any:
        """Return a parsed file, None where there is none."""
        data = await self.read(file)
        try:
            return None if data is None else parse_strict_json(data)
        except ValueError as error:
            raise ModelError(f"{file} is not JSON: {error}", ANOTHER) from None

    async def read(self, file: str) -> bytes | None:
        """Return a file's bytes, None where there is none."""
        source = self.find(file)
        try:
            size = await source.size()
            if size > MAX_WHOLE_BYTES:
                found, most = in_words(size), in_words(MAX_WHOLE_BYTES)
                raise ModelFileError(f"{file} has {found}; at most {most} are read", ANOTHER)
            return await source.read(0, size)
        except ABSENT:
            return None


async def tensors_in(source: ByteSource) -> dict[str, StoredTensor]:
    """Return the places of a safetensors file's tensors; those of integers are left out."""
    size = await source.size()
    end = header_end(source.name, await source.read(0, min(LENGTH_BYTES, size)), size)
    stored, _ = parse_header(source.name, await source.read(0, end), size)
    return {
        name: StoredTensor(
            TensorInfo(name, BY_NAME[one.code], one.dims, one.begin, one.end - one.begin), source
        )
        for name, one in stored.items()
        if one.code in FLOATS
    }


async def from_one(tensors: Mapping[str, StoredTensor]) -> dict[str, np.ndarray]:
    """Return norms whose checkpoints hold what they have beyond 1: f32."""
    found = {}
    for own, tensor in tensors.items():
        data = await tensor.source.read(tensor.info.offset, tensor.info.nbytes)
        found[own] = dequantise(tensor.info.kind, data).reshape(tensor.info.dims) + np.float32(1)
    return found
