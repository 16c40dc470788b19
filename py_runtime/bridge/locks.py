"""Locks that the tabs of a site share (Web Locks).

The browser's names are imported where they are used: a snapshot of Python is made without it.
"""

import asyncio
from typing import Any


class SharedLock:
    """A lock that one holder in this browser has between `acquire` and `release`.

    In a browser without Web Locks, anybody gets it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        loop = asyncio.get_running_loop()
        self._held, self._released = loop.create_future(), loop.create_future()

    async def acquire(self) -> None:
        """Wait for the lock; a caller that is cancelled meanwhile does not get it later."""
        from js import navigator
        from pyodide.ffi import create_once_callable

        locks = getattr(navigator, "locks", None)
        if locks is not None:
            locks.request(self._name, create_once_callable(self._hold))
            try:
                await self._held
            except asyncio.CancelledError:  # perhaps just after the browser has granted it
                self.release()
                raise

    def release(self) -> None:
        self._released.set_result(None)

    async def _hold(self, lock: Any) -> None:
        """Hold the lock until it is released: the browser waits for the end of this coroutine."""
        if not self._held.done():
            self._held.set_result(None)
            await self._released
