"""A file of the Hub that is read in parts, to see what it is before it is downloaded."""

from collections.abc import Sequence
from contextlib import aclosing

from py_runtime.download.remote_file import RemoteFile
from py_runtime.hub.listing import HubFile
from py_runtime.weights.byte_source import Pieces, cut_pieces, read_pieces


class HubSource:
    """A ByteSource that keeps nothing."""

    is_remote = True

    def __init__(self, file: HubFile, remote: RemoteFile) -> None:
        self.name = file.path.rpartition("/")[2]
        self._size = file.size
        self._remote = remote

    async def size(self) -> int:
        return self._size

    async def read(self, offset: int, nbytes: int) -> bytes:
        return await read_pieces(self, offset, nbytes)

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        if cuts[0] == cuts[-1]:
            return
        part = await self._remote.open(cuts[0], cuts[-1])
        async with aclosing(cut_pieces(self.name, part.answer, part.start, cuts)) as pieces:
            async for piece in pieces:
                yield piece
