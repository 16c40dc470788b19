"""The interface of a connection: requests by fetch() in the page, by Python's library natively."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from py_runtime.base.file_blocks import FileBlocks
from py_runtime.base.platform import IN_PAGE

READ_BYTES = 2 << 20  # of memory, for what arrives


class Answer(FileBlocks, Protocol):
    """An answer of whatever status; its blocks end where the body does, or where it is cut off."""

    status: int
    headers: dict[str, str]  # by their names in lower case


class Connection(Protocol):
    """A way to hosts: it follows redirects, and shows a token to no host but the one requested."""

    async def open(self, url: str, headers: Mapping[str, str]) -> Answer:
        """Send a request; raise NetworkError if nothing comes back."""


def open_connection() -> Connection:
    """Return this platform's connection to other people's hosts."""
    if IN_PAGE:
        from py_runtime.download.page_connection import PageConnection

        # Our own storage keeps what comes, and redirects expire.
        return PageConnection(cache="no-store", credentials="omit", referrerPolicy="no-referrer")
    from py_runtime.download.native_connection import NativeConnection

    return NativeConnection()


async def read_all(answer: Answer, max_bytes: int) -> bytes:
    """Read a small body; one byte more than `max_bytes` shows that it is not small."""
    memory = np.empty(min(READ_BYTES, max_bytes + 1), np.uint8)
    data = bytearray()
    try:
        while len(data) <= max_bytes and len(block := await answer.next_block(memory)):
            data += block.tobytes()
    finally:
        answer.close()
    return bytes(data[: max_bytes + 1])
