"""Tensors of a file that is too large to be held: read in blocks as they are wanted."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import numpy as np

from py_runtime.base.messages import message
from py_runtime.base.model_errors import ModelError
from py_runtime.folder.plain_safetensors import (
    ITEM_BYTES,
    Stored,
    as_floats,
    header_end,
    parse_header,
)
from py_runtime.folder.safetensors_header import LENGTH_BYTES
from py_runtime.glass.autoencoders.errors import AutoencoderError
from py_runtime.glass.autoencoders.npz import NPZ, arrays_of
from py_runtime.weights.byte_source import ByteSource

BLOCK_BYTES = 8 << 20  # of a file that are held at once


@dataclass(frozen=True, eq=False)
class StreamedTensors:
    """The tensors of a file; its header was checked against the file's size."""

    source: ByteSource
    stored: Mapping[str, Stored]
    metadata: Mapping[str, str]

    @classmethod
    async def open(cls, source: ByteSource) -> "StreamedTensors":
        try:
            if source.name.endswith(NPZ):
                return cls(source, await arrays_of(source), {})
            size = await source.size()
            start = await source.read(0, min(LENGTH_BYTES, size))
            end = header_end(source.name, start, size)
            stored, metadata = parse_header(source.name, await source.read(0, end), size)
        except ModelError as error:
            raise _damaged(error) from None
        return cls(source, stored, metadata)

    @property
    def file(self) -> str:
        return self.source.name

    async def whole(self, name: str) -> np.ndarray:
        """Return a tensor, f32."""
        entry = self.stored[name]
        return (await self._floats(name, entry.begin, entry.end)).reshape(entry.dims)

    async def row(self, name: str, at: int) -> np.ndarray:
        """Return a row of a matrix, f32 [columns]."""
        entry = self.stored[name]
        nbytes = entry.dims[1] * ITEM_BYTES[entry.code]
        return await self._floats(name, entry.begin + at * nbytes, entry.begin + (at + 1) * nbytes)

    def rows_of_a_block(self, name: str) -> int:
        """Return how many rows of a matrix are read at once."""
        entry = self.stored[name]
        return max(1, BLOCK_BYTES // (entry.dims[1] * ITEM_BYTES[entry.code]))

    async def blocks(
        self, name: str, wanted: np.ndarray | None = None
    ) -> AsyncIterator[tuple[slice, np.ndarray]]:
        """Yield (rows, f32 [rows, columns]) of a matrix; those with no wanted row are passed by.

        `wanted` is a truth value for each row.
        """
        entry = self.stored[name]
        rows, columns = entry.dims
        nbytes = columns * ITEM_BYTES[entry.code]
        step = self.rows_of_a_block(name)
        for first in range(0, rows, step):
            here = slice(first, min(first + step, rows))
            if wanted is not None and not wanted[here].any():
                continue
            begin, end = entry.begin + here.start * nbytes, entry.begin + here.stop * nbytes
            yield here, (await self._floats(name, begin, end)).reshape(-1, columns)

    async def _floats(self, name: str, begin: int, end: int) -> np.ndarray:
        try:
            raw = np.frombuffer(await self.source.read(begin, end - begin), np.uint8)
            values = as_floats(self.file, name, self.stored[name].code, raw)
        except ModelError as error:
            raise _damaged(error) from None
        return values.astype(np.float32, copy=False)

    def check(self, name: str, wanted: tuple[int, ...]) -> None:
        """Refuse a tensor of another shape, or a missing one."""
        entry = self.stored.get(name)
        found = "missing" if entry is None else str(list(entry.dims))
        if entry is None or entry.dims != wanted:
            raise AutoencoderError(
                message(
                    "autoencoder_shape",
                    file=self.file,
                    tensor=name,
                    found=found,
                    wanted=str(list(wanted)),
                )
            )


def _damaged(error: ModelError) -> AutoencoderError:
    fault = str(error).rpartition("; ")[0]  # without the advice, which is about models
    return AutoencoderError(message("autoencoder_damaged", fault=fault))
