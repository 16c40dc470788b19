"""The shelf in this browser's storage, beside the models of sites."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from py_runtime.folder.browser_storage import PartialFile, Storage
from py_runtime.folder.file_set import FileSet
from py_runtime.folder.manifest import FileFacts
from py_runtime.folder.stored_names import BEGUN, FILE
from py_runtime.weights.page_source import StoredSource


class PageShelf:
    """A Shelf."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @classmethod
    async def open(cls) -> "PageShelf":
        return cls(await Storage.open())

    def sets(self) -> Mapping[str, FileSet]:
        kept = {model.url: model.manifest for model in self._storage.models}
        return {url: files for url, files in kept.items() if isinstance(files, FileSet)}

    def has(self, facts: FileFacts) -> bool:
        return self._storage.has(facts)

    def begun_bytes(self, facts: FileFacts) -> int:
        return self._storage.begun_bytes(facts)

    async def room_for(self, url: str, files: FileSet) -> int:
        return await self._storage.room_for(url, files)

    async def keep_set(self, url: str, files: FileSet) -> None:
        await self._storage.keep_manifest(url, files, files.to_json())

    def turn(
        self, facts: FileFacts, tell: Callable[[int], None]
    ) -> AbstractAsyncContextManager[None]:
        return self._storage.turn(facts, tell)

    async def begin(self, facts: FileFacts, at: int) -> PartialFile:
        return await self._storage.begin(facts, at)

    def begun(self, facts: FileFacts) -> StoredSource:
        size = self._storage.begun_bytes(facts)
        return StoredSource(BEGUN + facts.sha256, "what has arrived", size)

    def source(self, name: str, facts: FileFacts) -> StoredSource:
        return StoredSource(FILE + facts.sha256, name, facts.size)
