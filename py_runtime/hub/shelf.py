"""Where models of the Hub are kept: one interface, for a browser's storage and a cache folder.

A file is kept under its sha256, once for all models that have it. What is written has another name
until its hash is known to be right; a download that broke off stays there and goes on later.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import numpy as np

from py_runtime.base.platform import IN_PAGE
from py_runtime.folder.file_set import FileSet
from py_runtime.folder.manifest import FileFacts
from py_runtime.weights.byte_source import ByteSource


class Partial(Protocol):
    """A file that is being written, behind what is there of it: keep it, drop it, or leave it."""

    async def write(self, block: np.ndarray) -> None: ...

    async def keep(self, facts: FileFacts) -> None: ...

    async def drop(self) -> None: ...

    async def leave(self) -> None: ...


class Shelf(Protocol):
    """StorageError where something is refused."""

    def sets(self) -> Mapping[str, FileSet]:
        """What was begun or is whole, by address."""

    def has(self, facts: FileFacts) -> bool: ...

    def begun_bytes(self, facts: FileFacts) -> int: ...

    async def room_for(self, url: str, files: FileSet) -> int:
        """Bytes that may be added."""

    async def keep_set(self, url: str, files: FileSet) -> None:
        """From now on these files belong to this address."""

    def turn(
        self, facts: FileFacts, tell: Callable[[int], None]
    ) -> AbstractAsyncContextManager[None]:
        """Of those who share the shelf and want a file, one downloads it at a time; the others wait
        here, and `tell` hears how many bytes are there. What was left is known then."""

    async def begin(self, facts: FileFacts, at: int) -> Partial:
        """Goes on behind the first `at` bytes, which are there."""

    def begun(self, facts: FileFacts) -> ByteSource:
        """What there is of a file that broke off."""

    def source(self, name: str, facts: FileFacts) -> ByteSource:
        """A file that is kept."""


def is_whole(shelf: Shelf, files: FileSet) -> bool:
    """Whether it can be loaded without the network."""
    return all(map(shelf.has, files.files.values()))


def missing_bytes(shelf: Shelf, files: FileSet) -> int:
    """What is still to come."""
    return sum(
        facts.size - min(shelf.begun_bytes(facts), facts.size)
        for facts in files.files.values()
        if not shelf.has(facts)
    )


async def open_shelf() -> Shelf:
    """This platform's."""
    if IN_PAGE:
        from py_runtime.hub.page_shelf import PageShelf

        return await PageShelf.open()
    from py_runtime.hub.native_shelf import NativeShelf

    return NativeShelf.of_user()
