"""Files of any host, natively: read by ranges, gone on with where an answer breaks off."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from urllib.parse import urlsplit

import numpy as np

from py_runtime.base.errors import NetworkError, NotFoundError
from py_runtime.base.file_blocks import BLOCK_UNIT
from py_runtime.hub import download
from py_runtime.hub.connection import Answer, Connection, open_connection
from py_runtime.hub.errors import FORBIDDEN, MISSING, UNAUTHORISED, RefusedError
from py_runtime.hub.requests import OK, PARTIAL_CONTENT, FileRequests
from py_runtime.weights.byte_source import (
    CONTENT_RANGE,
    HEAD_BYTES,
    Pieces,
    RemoteSource,
    cut_pieces,
    ends_early,
)

GONE = 410


class HostRequests:
    """What is asked of a host that is not the Hub."""

    def __init__(self, connection: Connection | None = None) -> None:
        self._connection = connection or open_connection()

    def file(self, url: str) -> FileRequests:
        return FileRequests(self, url, url)

    async def ask(self, url: str, what: str, more: dict[str, str]) -> Answer:
        """NetworkError where it does not answer with what was asked for."""
        # What a host packs for the way has other ranges than the file.
        answer = await self._connection.open(url, {"Accept-Encoding": "identity", **more})
        if answer.status in (OK, PARTIAL_CONTENT):
            return answer
        answer.close()
        told = f"{urlsplit(url).netloc} answered {answer.status}"
        if answer.status in (MISSING, GONE):
            raise NotFoundError(f"there is nothing at {what} ({told}): check the address")
        if answer.status in (UNAUTHORISED, FORBIDDEN):
            raise RefusedError(
                f"{what} is not for everybody ({told}): download it by yourself, and give its path"
            )
        raise NetworkError(f"{told} to a request for {what}: try again later")


class HostedSource(RemoteSource):
    """A ByteSource. A host without ranges sends the file from its beginning each time."""

    def __init__(self, url: str, requests: HostRequests) -> None:
        super().__init__(url)
        self._requests = requests.file(url)

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        if cuts[-1] > await self.size():
            raise ends_early(self.name, await self.size())
        position, failures = cuts[0], 0
        while position < cuts[-1]:
            before = position
            try:
                ahead = [position, *(cut for cut in cuts if cut > position)]
                async with aclosing(await self._one_answer(ahead)) as pieces:
                    async for position, piece in pieces:
                        yield position, piece
                        position += len(piece)
            except NetworkError as error:
                failures = 0 if position - before >= download.MUCH else failures + 1
                if failures > download.MAX_FAILURES or download.is_for_good(error):
                    raise
                await asyncio.sleep(download.FIRST_PAUSE * 2**failures if failures else 0)

    async def _one_answer(self, cuts: Sequence[int]) -> Pieces:
        position, answer = await self._requests.open(cuts[0], cuts[-1])
        return cut_pieces(self.name, _WholeBlocks(answer), position, cuts, _broke_off)

    async def _open_head(self) -> tuple[Answer, int | None]:
        _, answer = await self._requests.open(0, HEAD_BYTES)
        try:
            return answer, _size_told(answer, self.name)
        except BaseException:
            answer.close()
            raise


class _WholeBlocks:
    """An answer as FileBlocks: libraries give as many bytes as have come, uploads want more."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        """As much as the memory holds; of an answer that broke off what can be uploaded."""
        filled = 0
        while filled < len(memory) and len(block := await self._answer.next_block(memory[filled:])):
            filled += len(block)
        return memory if filled == len(memory) else memory[: filled - filled % BLOCK_UNIT]

    def close(self) -> None:
        self._answer.close()


def _broke_off(name: str, at: int) -> NetworkError:
    return NetworkError(f"{name} broke off after {at} bytes")


def _size_told(answer: Answer, what: str) -> int | None:
    """The file's, where the host tells it."""
    if answer.status == PARTIAL_CONTENT:
        told = CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
        if told is None:
            raise NetworkError(f"{what} came in part, and its host did not tell its size")
        return int(told[2])
    length = answer.headers.get("content-length", "")
    return int(length) if length.isdecimal() else None
