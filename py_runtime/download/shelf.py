"""The interface of a shelf, which keeps what a download brings.

A file is kept under its sha256, once for all models that have it. What is being written has another
name until its hash is known to be right; a download that broke off stays there and goes on later.
This browser's storage is such a shelf (folder/browser_storage.py), natively a cache folder
(hub/native_shelf.py).
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import numpy as np

from py_runtime.base.file_blocks import FileBlocks
from py_runtime.base.file_facts import FileFacts


class Partial(Protocol):
    """A file that is being written, behind what is there of it: keep it, drop it, or leave it."""

    async def write(self, block: np.ndarray) -> None: ...

    async def keep(self, facts: FileFacts) -> None:
        """Give it the name of a kept file: its bytes are right."""

    async def drop(self) -> None: ...

    async def leave(self) -> None:
        """Let it lie as far as it is, for the next download to go on."""


class Shelf(Protocol):
    """A shelf; its methods raise StorageError if something is refused."""

    def has(self, facts: FileFacts) -> bool: ...

    def begun_bytes(self, facts: FileFacts) -> int:
        """Return how much of the file a download has left that broke off."""

    async def open_begun(self, facts: FileFacts) -> FileBlocks:
        """Open what is there of a file that broke off."""

    async def drop_begun(self, facts: FileFacts) -> None: ...

    def take_turn(
        self, facts: FileFacts, tell: Callable[[int], None]
    ) -> AbstractAsyncContextManager[None]:
        """Wait until no other tab downloads the file; then it is known what that tab has left.

        Meanwhile `tell` hears how many bytes the other tab has.
        """

    async def begin(self, facts: FileFacts, at: int) -> Partial:
        """Open the file for writing behind its first `at` bytes, which are there.

        Raise StorageBusyError if another tab is writing to them.
        """
