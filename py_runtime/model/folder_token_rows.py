"""Token rows from a table of a model folder, and such a folder on a disk."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from py_runtime.base.progress import Meter
from py_runtime.decoder.token_rows import TokenRowsTable, table_of, with_token_rows_given
from py_runtime.folder.layout import ModelFolder, TensorPlace
from py_runtime.folder.on_disk import DiskFolder
from py_runtime.program.weight_kinds import FLOAT
from py_runtime.weights.byte_source import ByteSource, FileSource
from py_runtime.weights.kept_rows import KeptRows

Opener = Callable[[str], ByteSource]  # of a file of the folder


class FolderTokenRows(KeptRows):
    """The rows of a table in its stored form, whose parts may lie in several shards."""

    def __init__(self, table: TokenRowsTable, folder: ModelFolder, source: Opener) -> None:
        super().__init__(table.columns)
        self._kind = table.kind
        self._parts = [folder.tensors[name] for name in table.parts]
        self._source = source

    async def read_row(self, token: int) -> bytes:
        parts = [await self._read_part(part, token) for part in self._parts]
        return b"".join(parts)

    async def _read_part(self, part: TensorPlace, token: int) -> bytes:
        nbytes = _row_bytes(part)
        start, data, before = token * nbytes, b"", 0
        for piece in part.pieces:
            first = max(start - before, 0)
            wanted = min(nbytes - len(data), piece.nbytes - first)
            if wanted > 0:
                data += await self._source(piece.file).read(piece.offset + first, wanted)
            before += piece.nbytes
        return data

    def dense(self, rows: Sequence[bytes]) -> np.ndarray:
        stored = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
        arrays, at = [], 0
        for part in self._parts:
            own = np.ascontiguousarray(stored[:, at : at + _row_bytes(part)])
            arrays.append(own.view(part.dtype.host))
            at += _row_bytes(part)
        if self._kind == FLOAT:
            return arrays[0]
        from py_runtime.gguf.plane_values import dense  # few models need it

        return dense(self._kind, arrays[0], arrays[1] if len(arrays) > 1 else None)


def _row_bytes(part: TensorPlace) -> int:
    return sum(piece.nbytes for piece in part.pieces) // part.dims[0]


def split_token_rows(
    stored: ModelFolder, source: Opener
) -> tuple[ModelFolder, FolderTokenRows | None]:
    """Split a folder into what is loaded and the token rows that stay in their files."""
    table = table_of(stored.program)
    if table is None:
        return stored, None
    loaded = replace(stored, program=with_token_rows_given(stored.program))
    return loaded, FolderTokenRows(table, stored, source)


class LocalFolder(DiskFolder):
    """A folder store for Model.load, natively."""

    _token_rows: FolderTokenRows | None = None

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        folder, self._token_rows = split_token_rows(await super().open(meter), self._source)
        return folder

    def token_rows(self, model: ModelFolder) -> FolderTokenRows | None:
        return self._token_rows

    def _source(self, file: str) -> ByteSource:
        return FileSource(self.folder / file)
