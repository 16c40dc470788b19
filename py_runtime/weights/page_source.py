"""Sources of bytes in the page: files of this site, the user's files, and stored ones."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import aclosing
from urllib.parse import urljoin

from py_runtime.bridge.calls import bridge
from py_runtime.bridge.opfs import open_stored_part
from py_runtime.bridge.stream import Stream, open_url
from py_runtime.download.remote_file import CONTENT_RANGE
from py_runtime.weights.byte_source import (
    HEAD_BYTES,
    Pieces,
    RemoteSource,
    cut_pieces,
    read_pieces,
)


def url_of(where: str) -> str:
    """Return a whole address from one that may be relative to the page."""
    from js import location  # not above: a snapshot is made before there is a page

    return urljoin(str(location.href), where)


class UrlSource(RemoteSource):
    """A file of this site; a host without ranges sends it from its beginning each time."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        stream, position, _ = await self._open(cuts[0], cuts[-1])
        async with aclosing(cut_pieces(self.name, stream, position, cuts)) as pieces:
            async for piece in pieces:
                yield piece

    async def _open_head(self) -> tuple[Stream, int | None]:
        stream, _, size = await self._open(0, HEAD_BYTES)
        return stream, size

    async def _open(self, start: int, end: int) -> tuple[Stream, int, int | None]:
        """Open the file at `start`; return the stream, its actual start, and the size if known."""
        stream = open_url(self.url, headers={"Range": f"bytes={start}-{end - 1}"}, cache="no-cache")
        try:
            headers = await stream.headers()
        except BaseException:
            stream.close()
            raise
        part = CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
        if part is not None:
            return stream, int(part[1]), int(part[2])
        is_plain = "content-length" in headers and "content-encoding" not in headers
        return stream, 0, int(headers["content-length"]) if is_plain else None


class FileHere(ABC):
    """A file on this machine, whose size is known."""

    is_remote = False

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self._size = size

    async def size(self) -> int:
        return self._size

    async def read(self, offset: int, nbytes: int) -> bytes:
        return await read_pieces(self, offset, nbytes)

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        stream = await self._open(cuts[0], cuts[-1])
        async with aclosing(cut_pieces(self.name, stream, cuts[0], cuts)) as pieces:
            async for piece in pieces:
                yield piece

    @abstractmethod
    async def _open(self, start: int, end: int) -> Stream: ...


class DroppedSource(FileHere):
    """A file that the user dropped or chose; web/bridge/files.js has it under a number."""

    def __init__(self, number: int, name: str, size: int) -> None:
        super().__init__(name, size)
        self._number = number

    async def _open(self, start: int, end: int) -> Stream:
        return Stream(bridge.openBlob(bridge.given.get(self._number).slice(start, end)))


class StoredSource(FileHere):
    """A file in this browser's storage."""

    def __init__(self, entry: str, name: str, size: int) -> None:
        super().__init__(name, size)
        self._entry = entry

    async def _open(self, start: int, end: int) -> Stream:
        return await open_stored_part(self._entry, start, end)
