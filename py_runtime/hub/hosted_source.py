"""A file on any host, natively: read by ranges, and tried again where an answer breaks off."""

from collections.abc import Sequence
from contextlib import aclosing

import numpy as np

from py_runtime.base.errors import NetworkError
from py_runtime.base.file_blocks import BLOCK_UNIT
from py_runtime.base.sizes import parse_count
from py_runtime.download.connection import Answer
from py_runtime.download.host import HostRequests
from py_runtime.download.remote_file import PARTIAL_CONTENT, FilePart
from py_runtime.download.retries import Retries
from py_runtime.weights.byte_source import (
    HEAD_BYTES,
    Pieces,
    RemoteSource,
    cut_pieces,
    ends_early,
)


class HostedSource(RemoteSource):
    """A ByteSource; a host without ranges sends the file from its beginning each time."""

    def __init__(self, url: str, requests: HostRequests) -> None:
        super().__init__(url)
        self._remote = requests.file(url)

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        if cuts[-1] > await self.size():
            raise ends_early(self.name, await self.size())
        position, retries = cuts[0], Retries()
        while position < cuts[-1]:
            before = position
            try:
                ahead = [position, *(cut for cut in cuts if cut > position)]
                async with aclosing(await self._one_answer(ahead)) as pieces:
                    async for position, piece in pieces:
                        yield position, piece
                        position += len(piece)
            except NetworkError as error:
                await retries.pause_after(error, position - before)

    async def _one_answer(self, cuts: Sequence[int]) -> Pieces:
        part = await self._remote.open(cuts[0], cuts[-1])
        return cut_pieces(self.name, _WholeBlocks(part.answer), part.start, cuts, _broke_off)

    async def _open_head(self) -> tuple[Answer, int | None]:
        part = await self._remote.open(0, HEAD_BYTES)
        try:
            return part.answer, _told_size(part, self.name)
        except BaseException:
            part.answer.close()
            raise


class _WholeBlocks:
    """An answer in blocks as large as they can be, of whole units, which uploads need."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        """Fill the memory; of an answer that broke off, return what can be uploaded."""
        filled = 0
        while filled < len(memory) and len(block := await self._answer.next_block(memory[filled:])):
            filled += len(block)
        return memory if filled == len(memory) else memory[: filled - filled % BLOCK_UNIT]

    def close(self) -> None:
        self._answer.close()


def _broke_off(name: str, at: int) -> NetworkError:
    return NetworkError(f"{name} broke off after {at} bytes")


def _told_size(part: FilePart, what: str) -> int | None:
    """Return the file's size if the host tells it."""
    if part.answer.status == PARTIAL_CONTENT:
        if part.file_size is None:
            raise NetworkError(f"{what} came in part, and its host did not tell its size")
        return part.file_size
    return parse_count(part.answer.headers.get("content-length", ""))
