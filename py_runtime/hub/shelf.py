"""The interface of the shelf for models of the Hub, and this platform's shelf."""

from collections.abc import Mapping
from typing import Protocol

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.platform import IN_PAGE
from py_runtime.download.shelf import Shelf
from py_runtime.folder.file_set import FileSet
from py_runtime.weights.byte_source import ByteSource


class HubShelf(Shelf, Protocol):
    """A Shelf that knows which files are which model's, by address."""

    def kept_sets(self) -> Mapping[str, FileSet]:
        """Return the models that are whole or were begun, by address."""

    async def room_for(self, url: str, files: FileSet) -> int:
        """Return how many bytes may be added."""

    async def keep_set(self, url: str, files: FileSet) -> None:
        """Note that these files belong to this address from now on."""

    def source_of(self, name: str, facts: FileFacts) -> ByteSource:
        """Return a kept file as a source of bytes."""


def is_whole(shelf: HubShelf, files: FileSet) -> bool:
    """Return whether a model can be loaded without the network."""
    return all(map(shelf.has, files.files.values()))


def missing_bytes(shelf: HubShelf, files: FileSet) -> int:
    """Return how much of a model is still to be downloaded."""
    return sum(
        facts.size - min(shelf.begun_bytes(facts), facts.size)
        for facts in files.files.values()
        if not shelf.has(facts)
    )


async def open_shelf() -> HubShelf:
    """Open this platform's shelf."""
    if IN_PAGE:
        from py_runtime.hub.page_shelf import PageShelf

        return await PageShelf.open()
    from py_runtime.hub.native_shelf import NativeShelf

    return NativeShelf.of_user()
