"""A model folder on a disk, opened, mapped into memory and checked byte for byte."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from py_runtime.base.concurrency import aside
from py_runtime.base.model_errors import ModelFileError
from py_runtime.base.progress import Meter
from py_runtime.folder.layout import FileRange, ModelFolder, TensorPlace, combine_model
from py_runtime.folder.manifest import MANIFEST, MAX_MANIFEST_BYTES, Manifest, parse_manifest
from py_runtime.folder.safetensors_header import (
    LENGTH_BYTES,
    TensorEntry,
    header_end,
    parse_safetensors_header,
)


def open_model_folder(folder: Path) -> ModelFolder:
    """Read the manifest, the graph and the headers; the weights stay on the disk."""
    manifest = _open_manifest(folder)
    headers = {}
    for file in (*manifest.weights, *filter(None, [manifest.goldens])):
        headers[file] = _read_header(folder, file, manifest.files[file].size)
    graph = _read(folder, manifest.graph, manifest.files[manifest.graph].size)
    return combine_model(manifest, graph, headers)


class DiskFolder:
    """A folder's files; model/folder_token_rows.py makes of it what Model.load opens natively."""

    end_tokens: frozenset[int] = frozenset()

    def __init__(self, where: str | Path) -> None:
        self.folder = Path(where)

    async def manifest(self) -> Manifest:
        return _open_manifest(self.folder)

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        """Open the folder; nothing is downloaded, so that the meter has nothing to tell yet."""
        return await aside(True, lambda: open_model_folder(self.folder))

    async def read(self, model: ModelFolder, file: str) -> bytes:
        try:
            data = (self.folder / file).read_bytes()
        except OSError as error:
            raise _unreadable(self.folder / file, error) from None
        model.manifest.check_file(file, data)
        return data

    def constants(self, model: ModelFolder) -> "ConstantFiles":
        return ConstantFiles(self.folder, model.tensors)


def verify_files(folder: Path) -> Manifest:
    """Read every byte; raise ModelHashError for the first file that is not as exported."""
    manifest = _open_manifest(folder)
    for file in manifest.files:
        try:
            with (folder / file).open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise _unreadable(folder / file, error) from None
        manifest.check_sha256(file, sha256)
    return manifest


class ConstantFiles(Mapping[str, Any]):
    """A model's tensors by name, as arrays that are views of the files: what Graph.load takes.

    A tensor stored in pieces comes as a PiecedTensor, which has an array's shape and dtype, and
    becomes one only where numpy asks for its data.
    """

    def __init__(self, folder: Path, places: Mapping[str, TensorPlace]) -> None:
        self._folder = folder
        self._places = places
        self._maps: dict[str, np.ndarray] = {}  # each file's bytes

    def __getitem__(self, name: str) -> "np.ndarray | PiecedTensor":
        place = self._places[name]
        chunks = [self._bytes(piece) for piece in place.pieces]
        if len(chunks) > 1:
            return PiecedTensor(place, chunks)
        return chunks[0].view(place.dtype.host).reshape(place.dims)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _bytes(self, piece: FileRange) -> np.ndarray:
        if piece.file not in self._maps:
            try:
                self._maps[piece.file] = np.memmap(self._folder / piece.file, np.uint8, "r")
            except OSError as error:
                raise _unreadable(self._folder / piece.file, error) from None
        return self._maps[piece.file][piece.offset : piece.offset + piece.nbytes]


class PiecedTensor:
    """A tensor whose pieces lie in several files; numpy joins them when it needs the data."""

    def __init__(self, place: TensorPlace, chunks: list[np.ndarray]) -> None:
        self.shape = place.dims
        self.dtype = place.dtype.host
        self._chunks = chunks

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a tensor in several files becomes an array only by copying")
        joined = np.concatenate(self._chunks).view(self.dtype).reshape(self.shape)
        return joined.astype(self.dtype if dtype is None else dtype, copy=False)


def _open_manifest(folder: Path) -> Manifest:
    if not (folder / MANIFEST).is_file():
        raise ModelFileError(
            f"there is no model in {folder}: it has no {MANIFEST}", "create one with inpage export"
        )
    manifest = parse_manifest(_read(folder, MANIFEST, MAX_MANIFEST_BYTES + 1))
    for file in manifest.files:
        try:
            size = (folder / file).stat().st_size
        except OSError as error:
            raise _unreadable(folder / file, error) from None
        manifest.check_size(file, size)
    return manifest


def _read_header(folder: Path, file: str, file_size: int) -> list[TensorEntry]:
    end = header_end(file, _read(folder, file, LENGTH_BYTES), file_size)
    return parse_safetensors_header(file, _read(folder, file, end), file_size)


def _read(folder: Path, file: str, nbytes: int) -> bytes:
    """Read the first bytes of a file, fewer if it is shorter."""
    try:
        with (folder / file).open("rb") as stream:
            return stream.read(nbytes)
    except OSError as error:
        raise _unreadable(folder / file, error) from None


def _unreadable(path: Path, error: OSError) -> ModelFileError:
    return ModelFileError(f"{path} cannot be read: {error.strerror or error}")
