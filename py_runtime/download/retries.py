"""The decision whether a download that failed is tried again, and when."""

import asyncio

from py_runtime.base.errors import NetworkError

MAX_FAILURES = 4  # in a row, with little progress between them
MUCH = 64 << 10  # bytes: a host that sends less each time would keep a download going forever
FIRST_PAUSE = 1.0  # seconds; each further pause is twice as long


class Retries:
    """A count of failures in a row; progress between two of them starts it anew."""

    def __init__(self) -> None:
        self._failures = 0

    async def pause_after(self, error: NetworkError, received: int) -> None:
        """Wait before the next try; raise the error if there should be none.

        `received` counts the bytes that arrived between the failure before and this one.
        """
        self._failures = 0 if received >= MUCH else self._failures + 1
        if self._failures > MAX_FAILURES or error.is_final:
            raise error
        await asyncio.sleep(FIRST_PAUSE * 2 ** (self._failures - 1) if self._failures else 0)
