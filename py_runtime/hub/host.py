"""Files of any host, natively: read by ranges, gone on with where an answer breaks off."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from urllib.parse import unquote, urlsplit

import numpy as np

from py_runtime.base.errors import NetworkError, NotFoundError
from py_runtime.hub import download
from py_runtime.hub.connection import Answer, Connection, open_connection
from py_runtime.hub.errors import FORBIDDEN, MISSING, UNAUTHORISED, RefusedError
from py_runtime.hub.requests import PART, WHOLE, FileRequests
from py_runtime.weights.byte_source import (
    CONTENT_RANGE,
    HEAD_BYTES,
    PIECE_BYTES,
    Pieces,
    ends_early,
)

GONE = 410
UPLOADED_AT_ONCE = 16  # bytes: pieces are whole numbers of them, as byte_source.py has it


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
        if answer.status in (WHOLE, PART):
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


class HostedSource:
    """A ByteSource. A host without ranges sends the file from its beginning each time."""

    is_remote = True

    def __init__(self, url: str, requests: HostRequests) -> None:
        self.name = unquote(urlsplit(url).path.rpartition("/")[2])
        self._requests = requests.file(url)
        self._head = b""
        self._size: int | None = None

    async def size(self) -> int:
        if self._size is None:
            _, answer = await self._requests.open(0, HEAD_BYTES)
            try:
                told = _size_told(answer, self.name)
                self._head, passed = await _first(answer, None if told is None else HEAD_BYTES)
            finally:
                answer.close()
            self._size = passed if told is None else told
        return self._size

    async def read(self, offset: int, nbytes: int) -> bytes:
        await self.size()
        if offset + nbytes <= len(self._head):
            return self._head[offset : offset + nbytes]
        data = bytearray()
        async with aclosing(self.pieces([offset, offset + nbytes])) as pieces:
            async for _, piece in pieces:
                data += piece.tobytes()
        return bytes(data)

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        if cuts[-1] > await self.size():
            raise ends_early(self.name, await self.size())
        position, failures = cuts[0], 0
        while position < cuts[-1]:
            before = position
            try:
                ahead = [position, *(cut for cut in cuts if cut > position)]
                async with aclosing(self._one_answer(ahead)) as pieces:
                    async for position, piece in pieces:
                        yield position, piece
                        position += len(piece)
            except NetworkError as error:
                failures = 0 if position > before else failures + 1
                if failures > download.MAX_FAILURES or download.is_for_good(error):
                    raise
                await asyncio.sleep(download.FIRST_PAUSE * 2**failures if failures else 0)

    async def _one_answer(self, cuts: Sequence[int]) -> Pieces:
        position, answer = await self._requests.open(cuts[0], cuts[-1])
        memory = np.empty(PIECE_BYTES, np.uint8)
        try:
            for end in cuts:
                while position < end:
                    block = await _whole_block(answer, memory[: end - position])
                    if not len(block):
                        raise NetworkError(f"{self.name} broke off after {position} bytes")
                    if position >= cuts[0]:
                        yield position, block
                    position += len(block)
        finally:
            answer.close()


async def _whole_block(answer: Answer, memory: np.ndarray) -> np.ndarray:
    """As much as the memory holds; of an answer that broke off what can be uploaded."""
    filled = 0
    while filled < len(memory) and len(block := await answer.next_block(memory[filled:])):
        filled += len(block)
    return memory if filled == len(memory) else memory[: filled - filled % UPLOADED_AT_ONCE]


async def _first(answer: Answer, wanted: int | None) -> tuple[bytes, int]:
    """The first bytes, and how many there are: all of them, unless so many suffice."""
    memory = np.empty(PIECE_BYTES, np.uint8)
    head, passed = b"", 0
    while wanted is None or passed < wanted:
        block = await answer.next_block(memory)
        if not len(block):
            break
        head += block[: HEAD_BYTES - len(head)].tobytes()
        passed += len(block)
    return head, passed


def _size_told(answer: Answer, what: str) -> int | None:
    """The file's, where the host tells it."""
    if answer.status == PART:
        told = CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
        if told is None:
            raise NetworkError(f"{what} came in part, and its host did not tell its size")
        return int(told[2])
    length = answer.headers.get("content-length", "")
    return int(length) if length.isdecimal() else None
