"""Requests to the Hub: one interface, in the page by fetch(), natively by Python's own library."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from py_runtime.base.platform import IN_PAGE

__all__ = ["Answer", "Connection", "open_connection"]

READ_BYTES = 2 << 20  # of memory, for what arrives


class Answer(Protocol):
    """Whatever the status is. To be closed."""

    status: int
    headers: dict[str, str]  # by their names in lower case

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        """The next bytes, at the beginning of `memory`; none at the end, or where it is cut off."""

    def close(self) -> None: ...


class Connection(Protocol):
    """Redirects are followed; a token goes to the address that was asked, and to no other host."""

    async def open(self, url: str, headers: Mapping[str, str]) -> Answer:
        """NetworkError where nothing comes back."""


def open_connection() -> Connection:
    """This platform's."""
    if IN_PAGE:
        from py_runtime.hub.page_connection import PageConnection

        return PageConnection()
    from py_runtime.hub.native_connection import NativeConnection

    return NativeConnection()


async def read_all(answer: Answer, max_bytes: int) -> bytes:
    """What is small; one byte more than `max_bytes` shows that it is not."""
    memory = np.empty(min(READ_BYTES, max_bytes + 1), np.uint8)
    data = bytearray()
    try:
        while len(data) <= max_bytes and len(block := await answer.next_block(memory)):
            data += block.tobytes()
    finally:
        answer.close()
    return bytes(data[: max_bytes + 1])
