"""Files as sources of bytes, read at any offset or streamed in pieces.

In the page a source is a URL of this site or a file that the user gave (weights/page_source.py);
natively it is a file on the disk. weights/open_source.py chooses.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

import numpy as np

from py_runtime.base.errors import NotFoundError
from py_runtime.base.file_blocks import FileBlocks
from py_runtime.base.model_errors import ModelFileError

HEAD_BYTES = 1 << 16  # what the first request brings along: most of what is read beforehand
PIECE_BYTES = 2 << 20  # most that is held of a file that streams past

Pieces = AsyncGenerator[tuple[int, np.ndarray], None]  # (place in the file, bytes from there on)


class MissingFileError(ModelFileError):
    """The error of a file that does not exist."""


ABSENT = (MissingFileError, NotFoundError)  # what a source raises whose file is not there


def ends_early(name: str, at: int) -> ModelFileError:
    """Return the error of a file that is cut short."""
    return ModelFileError(f"{name} ends after {at} bytes, in the middle of what it should hold")


class ByteSource(Protocol):
    """A file that is read in parts, wherever it lies."""

    name: str  # the file's, for messages
    is_remote: bool  # it comes through the network

    async def size(self) -> int: ...

    async def read(self, offset: int, nbytes: int) -> bytes:
        """Read exactly these bytes; ModelFileError if the file ends before."""

    def pieces(self, cuts: Sequence[int]) -> Pieces:
        """Stream everything from the first cut to the last, in order; no piece crosses a cut.

        Cuts ascend. A piece is valid until the next one is asked for, and has a multiple of
        BLOCK_UNIT bytes unless it ends at a cut. Close it (`contextlib.aclosing`) to stop early.
        """


class FileSource:
    """A file on a disk."""

    is_remote = False

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = self.path.name

    async def size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError as error:
            raise self._unreadable(error) from None

    async def read(self, offset: int, nbytes: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                data = file.read(nbytes)
        except OSError as error:
            raise self._unreadable(error) from None
        if len(data) < nbytes:
            raise ends_early(self.name, offset + len(data))
        return data

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        for start, end in pairwise(cuts):
            for position in range(start, end, PIECE_BYTES):
                data = await self.read(position, min(PIECE_BYTES, end - position))
                yield position, np.frombuffer(data, np.uint8)

    def _unreadable(self, error: OSError) -> ModelFileError:
        kind = MissingFileError if isinstance(error, FileNotFoundError) else ModelFileError
        return kind(f"{self.path} cannot be read: {error.strerror or error}")


class RemoteSource(ABC):
    """A file at an address; its beginning comes with its size and is kept for reading headers."""

    is_remote = True

    def __init__(self, url: str) -> None:
        self.name = unquote(urlsplit(url).path.rpartition("/")[2])
        self._head = b""
        self._size: int | None = None

    async def size(self) -> int:
        if self._size is None:
            blocks, told = await self._open_head()
            self._head, passed = await _read_head(blocks, to_the_end=told is None)
            self._size = passed if told is None else told
        return self._size

    async def read(self, offset: int, nbytes: int) -> bytes:
        await self.size()
        if offset + nbytes <= len(self._head):
            return self._head[offset : offset + nbytes]
        return await read_pieces(self, offset, nbytes)

    @abstractmethod
    def pieces(self, cuts: Sequence[int]) -> Pieces: ...

    @abstractmethod
    async def _open_head(self) -> tuple[FileBlocks, int | None]:
        """Open the file at its beginning, for HEAD_BYTES or more; also return its size if known."""


async def _read_head(blocks: FileBlocks, to_the_end: bool) -> tuple[bytes, int]:
    """Read the first HEAD_BYTES, and count the bytes as far as the file was read."""
    memory = np.empty(PIECE_BYTES, np.uint8)
    head, passed = b"", 0
    try:
        while to_the_end or passed < HEAD_BYTES:
            block = await blocks.next_block(memory)
            if not len(block):
                break
            head += block[: HEAD_BYTES - len(head)].tobytes()
            passed += len(block)
    finally:
        blocks.close()
    return head, passed


async def cut_pieces(
    name: str,
    blocks: FileBlocks,
    position: int,
    cuts: Sequence[int],
    fault: Callable[[str, int], Exception] = ends_early,
) -> Pieces:
    """Cut blocks that begin at `position`, at the first cut or before it, into pieces.

    It closes the blocks and raises `fault`, with the place, if they end before the last cut.
    """
    memory = np.empty(PIECE_BYTES, np.uint8)
    try:
        for end in cuts:
            while position < end:
                block = await blocks.next_block(memory[: end - position])
                if not len(block):
                    raise fault(name, position)
                if position >= cuts[0]:
                    yield position, block
                position += len(block)
    finally:
        blocks.close()


async def read_pieces(source: ByteSource, offset: int, nbytes: int) -> bytes:
    """Read bytes by joining the pieces of a source that has no cheaper way."""
    data = bytearray()
    async with aclosing(source.pieces([offset, offset + nbytes])) as pieces:
        async for _, piece in pieces:
            data += piece.data
    return bytes(data)


async def is_there(source: ByteSource) -> bool:
    """Return whether the file exists; other errors are raised."""
    try:
        await source.size()
    except ABSENT:
        return False
    return True
