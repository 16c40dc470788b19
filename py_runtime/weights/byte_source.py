"""Files as sources of bytes: read at any place, or streamed past in pieces.

In the page a source is a URL of this site or a file that the user gave (weights/page_source.py);
natively it is a file on the disk. weights/open_source.py chooses.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np

from py_runtime.base.errors import NotFoundError
from py_runtime.base.model_errors import ModelFileError

CONTENT_RANGE = re.compile(r"bytes ([0-9]+)-[0-9]+/([0-9]+)")  # where a part begins; all bytes
HEAD_BYTES = 1 << 16  # what the first request brings along: most of what is read beforehand
PIECE_BYTES = 2 << 20  # most that is held of a file that streams past

Pieces = AsyncGenerator[tuple[int, np.ndarray], None]  # (place in the file, bytes from there on)


class MissingFileError(ModelFileError):
    """There is no such file."""


ABSENT = (MissingFileError, NotFoundError)  # what a source raises whose file is not there


class ByteSource(Protocol):
    """A file that is read in parts, wherever it lies."""

    name: str  # the file's, for messages
    is_remote: bool  # it comes through the network

    async def size(self) -> int: ...

    async def read(self, offset: int, nbytes: int) -> bytes:
        """Exactly these bytes; ModelFileError where the file ends before."""

    def pieces(self, cuts: Sequence[int]) -> Pieces:
        """Everything from the first cut to the last, in order; no piece crosses a cut.

        Cuts ascend. A piece is good until the next one is asked for, and has a multiple of 16
        bytes but where it ends at a cut. Close it (`contextlib.aclosing`) to stop early.
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


async def is_there(source: ByteSource) -> bool:
    """Only its absence is False; other errors are raised."""
    try:
        await source.size()
    except ABSENT:
        return False
    return True


def ends_early(name: str, at: int) -> ModelFileError:
    """To be raised: the file is cut short."""
    return ModelFileError(f"{name} ends after {at} bytes, in the middle of what it should hold")
