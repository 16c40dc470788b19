"""Bytes that arrive in the page block by block, from the network or from storage."""

import json
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from py_runtime.base.concurrency import take_turns
from py_runtime.base.file_blocks import BLOCK_UNIT
from py_runtime.base.patience import Pace
from py_runtime.base.shapes import round_up
from py_runtime.bridge.calls import address_of, answer_of, bridge

BLOCK_BYTES = 2 << 20  # of the heap, for each stream


class Stream:
    """A stream of FileBlocks; leaving its `with` block cancels what has not arrived."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        bridge.closeStream(self._handle)

    async def headers(self) -> dict[str, str]:
        """Return the response headers by their lower-case names."""
        return dict(json.loads(await answer_of(bridge.streamHeaders(self._handle))))

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        """Read the next bytes into the beginning of `memory`, by BLOCK_UNIT; none at the end."""
        await take_turns()
        promise = bridge.readBlock(self._handle, address_of(memory), memory.nbytes)
        return memory[: await answer_of(promise)]


class NetworkStream(Stream):
    """A stream from a server, which must not come too slowly."""

    def __init__(self, handle: int, url: str) -> None:
        super().__init__(handle)
        self._pace = Pace(urlsplit(url).netloc)

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        self._pace.begin_waiting()
        block = await super().next_block(memory)
        self._pace.take(len(block))
        return block


def open_url(url: str, **options: Any) -> Stream:
    """Send a request with the options of JavaScript's fetch()."""
    return NetworkStream(bridge.openUrl(url, json.dumps(options)), url)


def memory_for(nbytes: int) -> np.ndarray:
    """Allocate memory for a file of that size, plus a byte to notice one that is longer."""
    return np.empty(min(BLOCK_BYTES, round_up(nbytes + 1, BLOCK_UNIT)), np.uint8)


async def read_first(stream: Stream, max_bytes: int) -> bytes:
    """Read a small file, or the first bytes of a larger one."""
    memory = memory_for(max_bytes)
    data = bytearray()
    with stream:
        while len(data) < max_bytes and len(block := await stream.next_block(memory)):
            data += block.tobytes()
    return bytes(data[:max_bytes])
