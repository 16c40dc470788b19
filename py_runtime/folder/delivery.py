"""The delivery of a model's files into the page: block by block, and none that is not as exported.

A file comes from this browser's storage if it is kept there, else from the site (download/), and is
then kept. Its sha256 is computed while it passes, unless it is kept, was seen to be right before,
and nobody has written to it since.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from typing import Any

import numpy as np

from py_runtime.base import notices
from py_runtime.base.errors import StorageBusyError, StorageError
from py_runtime.base.file_facts import FileFacts
from py_runtime.base.messages import message
from py_runtime.base.model_errors import ModelFileError, ModelHashError
from py_runtime.base.progress import DOWNLOAD, Meter
from py_runtime.bridge.stream import Stream, memory_for, open_url, read_first
from py_runtime.download.download import Download, Sink, discard
from py_runtime.download.file_check import ExpectedFile, FileCheck
from py_runtime.download.host import HostRequests
from py_runtime.download.page_connection import PageConnection
from py_runtime.folder.browser_storage import PartialFile, Storage
from py_runtime.folder.manifest import Manifest

FILES_AT_ONCE = 3
DAMAGED_COPY = (StorageError, ModelFileError, ModelHashError)


class Delivery:
    """The files of one model, on their way through the page's memory."""

    def __init__(
        self, url: str, manifest: Manifest, storage: Storage | None, keeping: bool
    ) -> None:
        self.storage = storage
        self.keeping = keeping  # whether what is downloaded is stored
        self._url = url
        self._manifest = manifest
        self._turns = asyncio.Semaphore(FILES_AT_ONCE)

    def is_kept(self, file: str) -> bool:
        return self.storage is not None and self.storage.has(self._manifest.files[file])

    def missing(self, files: Iterable[str]) -> list[str]:
        """Return those of the files that are not kept."""
        return [file for file in files if not self.is_kept(file)]

    async def deliver(self, file: str, sink: Sink, meter: Meter) -> None:
        """Hand a file to the sink, from storage or from the site."""
        async with self._turns:
            while not await self._hand_over_kept(file, sink):
                meter.expect(DOWNLOAD, file, self._manifest.files[file].size)
                if await self._download(file, sink, meter).run():
                    break

    async def read(self, file: str, meter: Meter) -> bytes:
        data = bytearray(self._manifest.files[file].size)

        async def take(position: int, block: np.ndarray) -> None:
            data[position : position + len(block)] = block.tobytes()

        await self.deliver(file, take, meter)
        return bytes(data)

    async def read_first(self, file: str, count: int) -> bytes:
        """Read the beginning of a file, unchecked: whoever delivers the whole of it compares."""
        async with self._turns:
            if self.storage and await self.storage.finds(self._manifest.files[file]):
                try:
                    return await read_first(await self._open_kept(file), count)
                except StorageError:
                    await self._drop_kept(file)
            wanted = {"Range": f"bytes=0-{count - 1}"}
            return await read_first(open_url(self._url + file, headers=wanted), count)

    async def drop_damaged(self) -> bool:
        """Drop the kept files that are not as exported; return whether there were any."""
        found = False
        for file in filter(self.is_kept, self._manifest.files):
            try:
                await self._pass_on_kept(file, discard, hashing=True)
            except DAMAGED_COPY:
                await self._drop_kept(file)
                found = True
        return found

    def stop_keeping(self, error: StorageError) -> None:
        """Load what is still to come without storing it, and tell the user once."""
        if self.keeping:
            self.keeping = False
            name, reason = self._manifest.name, error.wording
            notices.post("storage", message("storage_refuses_file", name=name, reason=reason))

    def _download(self, file: str, sink: Sink, meter: Meter) -> Download:
        # The browser's own cache need not keep a second copy of files that storage keeps.
        host = HostRequests(PageConnection(cache="no-store" if self.keeping else "default"))
        shelf = _YieldingShelf(self.storage if self.keeping else None, self.stop_keeping)
        return Download(self._expected(file), host.file(self._url + file), shelf, meter, sink)

    async def _hand_over_kept(self, file: str, sink: Sink) -> bool:
        """Pass on the kept copy if there is one that is as exported; drop it if it is not."""
        if self.storage is None or not self.is_kept(file):
            return False
        facts = self._manifest.files[file]
        known = self.storage.was_checked(facts)
        try:
            await self._pass_on_kept(file, sink, hashing=not known)
        except DAMAGED_COPY:
            await self._drop_kept(file)
            return False
        if not known:
            await self.storage.mark_checked(facts)
        return True

    async def _pass_on_kept(self, file: str, sink: Sink, hashing: bool) -> None:
        """Pass on every byte; raise one of DAMAGED_COPY if they are not the file's.

        Only the end shows that, so that a sink must not count its bytes as good before.
        """
        memory = memory_for(self._manifest.files[file].size)
        check = FileCheck(self._expected(file), hashing)
        with closing(await self._open_kept(file)) as stream:
            while len(block := await stream.next_block(memory)):
                position = check.position
                check.take(block)
                await sink(position, block)
        check.finish()

    def _expected(self, file: str) -> ExpectedFile:
        return ExpectedFile(file, self._manifest.files[file], "was exported")

    async def _open_kept(self, file: str) -> Stream:
        assert self.storage is not None, "it is kept"
        return await self.storage.open_file(self._manifest.files[file])

    async def _drop_kept(self, file: str) -> None:
        assert self.storage is not None, "it was kept"
        await self.storage.drop(self._manifest.files[file])


class _YieldingShelf:
    """A Shelf over this browser's storage, or over nothing: what it refuses goes on in memory."""

    def __init__(self, storage: Storage | None, refuse: Callable[[StorageError], None]) -> None:
        self._storage = storage
        self._refuse = refuse

    def has(self, facts: FileFacts) -> bool:
        return self._storage is not None and self._storage.has(facts)

    def begun_bytes(self, facts: FileFacts) -> int:
        return self._storage.begun_bytes(facts) if self._storage is not None else 0

    async def open_begun(self, facts: FileFacts) -> Stream:
        assert self._storage is not None, "something was begun"
        return await self._storage.open_begun(facts)

    async def drop_begun(self, facts: FileFacts) -> None:
        assert self._storage is not None, "something was begun"
        await self._storage.drop_begun(facts)

    def take_turn(
        self, facts: FileFacts, tell: Callable[[int], None]
    ) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._storage is None else self._storage.take_turn(facts, tell)

    async def begin(self, facts: FileFacts, at: int) -> "_YieldingPartial":
        partial = None
        if self._storage is not None:
            try:
                partial = await self._storage.begin(facts, at)
            except StorageBusyError:
                raise
            except StorageError as error:
                self._refuse(error)
        return _YieldingPartial(partial, self._refuse)


class _YieldingPartial:
    """A Partial that is dropped where the browser refuses it: the load goes on without."""

    def __init__(self, partial: PartialFile | None, refuse: Callable[[StorageError], None]) -> None:
        self._partial = partial
        self._refuse = refuse

    async def write(self, block: np.ndarray) -> None:
        if self._partial is not None:
            await self._attempt(self._partial.write(block))

    async def keep(self, facts: FileFacts) -> None:
        if self._partial is not None:
            await self._attempt(self._partial.keep(facts))

    async def drop(self) -> None:
        if self._partial is not None:
            partial, self._partial = self._partial, None
            await partial.drop()

    async def leave(self) -> None:
        if self._partial is not None:
            partial, self._partial = self._partial, None
            await partial.leave()

    async def _attempt(self, step: Coroutine[Any, Any, None]) -> None:
        try:
            await step
        except StorageBusyError:  # another tab keeps the same file
            await self.drop()
        except StorageError as error:
            await self.drop()
            self._refuse(error)
