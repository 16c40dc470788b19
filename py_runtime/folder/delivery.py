"""Brings a model's files into the page, block by block, and lets none pass that is not as exported.

A file comes from this browser's storage where it is kept, else from the network, and is then kept.
A download that broke off goes on where it ended. The file's sha256 is computed while it passes,
unless it is kept, was seen to be right before, and nobody has written to it since.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import closing, suppress
from typing import Any, Protocol

import numpy as np

from py_runtime.base import notices
from py_runtime.base.errors import StorageBusyError, StorageError
from py_runtime.base.file_blocks import BLOCK_UNIT, FileBlocks
from py_runtime.base.messages import message
from py_runtime.base.model_errors import ModelFileError, ModelHashError
from py_runtime.base.progress import DOWNLOAD, Meter
from py_runtime.bridge.stream import Stream, memory_for, open_url, read_first
from py_runtime.folder.browser_storage import PartialFile, Storage
from py_runtime.folder.manifest import FileFacts, Manifest

FILES_AT_ONCE = 3
DAMAGED_COPY = (StorageError, ModelFileError, ModelHashError)


class Sink(Protocol):
    """Takes a file's blocks in order; one at position 0 may come again, and begins anew."""

    def __call__(self, position: int, block: np.ndarray) -> Awaitable[None]: ...


class Delivery:
    """One model's files, on their way through the page's memory."""

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
        return [file for file in files if not self.is_kept(file)]

    async def deliver(self, file: str, sink: Sink, meter: Meter) -> None:
        async with self._turns:
            if self.is_kept(file):
                with suppress(*DAMAGED_COPY):
                    return await self._pass_on_kept(file, sink)
                await self._drop_kept(file)
            meter.expect(DOWNLOAD, file, self._manifest.files[file].size)
            if self.storage is None or not self.keeping:
                return await self._download(file, sink, meter)
            await self._download_for_all(self.storage, file, sink, meter)

    async def read(self, file: str, meter: Meter) -> bytes:
        data = bytearray(self._manifest.files[file].size)

        async def take(position: int, block: np.ndarray) -> None:
            data[position : position + len(block)] = block.tobytes()

        await self.deliver(file, take, meter)
        return bytes(data)

    async def read_first(self, file: str, count: int) -> bytes:
        """The beginning of a file, not checked: whoever delivers the whole of it compares."""
        async with self._turns:
            if self.is_kept(file):
                with suppress(StorageError):
                    return await read_first(await self._open_kept(file), count)
                await self._drop_kept(file)
            wanted = {"Range": f"bytes=0-{count - 1}"}
            return await read_first(open_url(self._url + file, headers=wanted), count)

    async def drop_damaged(self) -> bool:
        """Whether a kept file was not as exported; it is kept no longer."""
        found = False
        for file in filter(self.is_kept, self._manifest.files):
            try:
                await self._pass_on(file, await self._open_kept(file), discard)
            except DAMAGED_COPY:
                await self._drop_kept(file)
                found = True
        return found

    def stop_keeping(self, error: StorageError) -> None:
        if self.keeping:
            self.keeping = False
            name, reason = self._manifest.name, error.wording
            notices.post("storage", message("storage_refuses_file", name=name, reason=reason))

    async def _download_for_all(
        self, storage: Storage, file: str, sink: Sink, meter: Meter
    ) -> None:
        """Of tabs that want the same file one downloads it, and the others take what it keeps."""
        facts = self._manifest.files[file]

        def follow(begun: int) -> None:
            meter.reach(DOWNLOAD, file, min(begun, facts.size))

        async with storage.turn(facts, follow):
            if self.is_kept(file):
                with suppress(*DAMAGED_COPY):
                    await self._pass_on_kept(file, sink)
                    return follow(facts.size)
                await self._drop_kept(file)
            await self._download(file, sink, meter)

    async def _download(self, file: str, sink: Sink, meter: Meter) -> None:
        facts = self._manifest.files[file]
        begun = self.storage.begun_bytes(facts) if self.storage and self.keeping else 0
        if self.storage is not None and begun:
            try:
                return await self._fetch(file, sink, meter, self._open_rest, begun)
            except StorageBusyError:
                pass  # another tab is at it, and it is not ours to drop
            except (StorageError, ModelFileError, ModelHashError, _NoRangesError):
                await self.storage.drop_begun(facts)
        await self._fetch(file, sink, meter, self._open_whole, 0)

    async def _open_whole(self, file: str) -> FileBlocks:
        return open_url(self._url + file, cache=self._cache())

    async def _open_rest(self, file: str) -> FileBlocks:
        """What is there from storage, the rest from the network, as one file."""
        assert self.storage is not None, "something is there"
        facts = self._manifest.files[file]
        begun = self.storage.begun_bytes(facts)
        if begun % BLOCK_UNIT or begun >= facts.size:  # no download leaves it so
            raise ModelFileError(f"{file} has {begun} bytes in storage")
        wanted = {"Range": f"bytes={begun}-"}
        rest = open_url(self._url + file, headers=wanted, cache=self._cache())
        try:
            content_range = (await rest.headers()).get("content-range")
            if content_range != f"bytes {begun}-{facts.size - 1}/{facts.size}":
                raise _NoRangesError
            return _Joined(await self.storage.open_begun(facts), rest)
        except BaseException:
            rest.close()
            raise

    async def _fetch(
        self,
        file: str,
        sink: Sink,
        meter: Meter,
        open_stream: Callable[[str], Awaitable[FileBlocks]],
        begun: int,
    ) -> None:
        """Keeps what comes behind the first `begun` bytes, which storage has."""
        keeper = _Keeper(self, await self._begin(self._manifest.files[file], begun))

        async def take(position: int, block: np.ndarray) -> None:
            meter.reach(DOWNLOAD, file, position + len(block))
            await sink(position, block)
            if position >= begun:
                await keeper.write(block)

        try:
            await self._pass_on(file, await open_stream(file), take)
            await keeper.finish(file)
        except (ModelFileError, ModelHashError):
            await keeper.drop()
            raise
        finally:
            await keeper.leave()

    async def _begin(self, facts: FileFacts, begun: int) -> PartialFile | None:
        if self.storage is None or not self.keeping:
            return None
        try:
            return await self.storage.begin(facts, begun)
        except StorageError as error:
            if begun:
                raise
            self.stop_keeping(error)
            return None

    def _cache(self) -> str:
        """What storage keeps, the browser's own cache need not keep as well."""
        return "no-store" if self.keeping else "default"

    async def _pass_on_kept(self, file: str, sink: Sink) -> None:
        assert self.storage is not None, "it is kept"
        facts = self._manifest.files[file]
        known = self.storage.was_checked(facts)
        await self._pass_on(file, await self._open_kept(file), sink, hashing=not known)
        if not known:
            await self.storage.mark_checked(facts)

    async def _pass_on(
        self, file: str, stream: FileBlocks, sink: Sink, hashing: bool = True
    ) -> None:
        """Every byte, hashed; raises ModelFileError or ModelHashError when they are not the file's.

        Only the end shows that, so that a sink must not count its bytes as good before.
        """
        size = self._manifest.files[file].size
        memory = memory_for(size)
        sha256 = hashlib.sha256()
        position = 0
        with closing(stream):
            while len(block := await stream.next_block(memory)):
                if position + len(block) > size:
                    raise ModelFileError(f"{file} has more than the {size} bytes it should have")
                if hashing:
                    sha256.update(block.data)
                await sink(position, block)
                position += len(block)
        self._manifest.check_size(file, position)
        if hashing:
            self._manifest.check_sha256(file, sha256.hexdigest())

    async def _open_kept(self, file: str) -> Stream:
        assert self.storage is not None, "it is kept"
        return await self.storage.open_file(self._manifest.files[file])

    async def _drop_kept(self, file: str) -> None:
        assert self.storage is not None, "it was kept"
        await self.storage.drop(self._manifest.files[file])


class _Keeper:
    """Stores a download while it passes; where the browser refuses, the load goes on without."""

    def __init__(self, delivery: Delivery, partial: PartialFile | None) -> None:
        self._delivery = delivery
        self._partial = partial

    async def write(self, block: np.ndarray) -> None:
        if self._partial is not None:
            await self._attempt(self._partial.write(block))

    async def finish(self, file: str) -> None:
        """The bytes were right: from here on the file is kept."""
        if self._partial is not None:
            await self._attempt(self._partial.keep(self._delivery._manifest.files[file]))
            self._partial = None

    async def drop(self) -> None:
        if self._partial is not None:
            partial, self._partial = self._partial, None
            await partial.drop()

    async def leave(self) -> None:
        """Something broke off: what has come stays for the next time."""
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
            self._delivery.stop_keeping(error)


class _NoRangesError(Exception):
    """The host does not send the rest of a file, or not of this one."""


class _Joined:
    """Two streams, one behind the other."""

    def __init__(self, first: Stream, second: Stream) -> None:
        self._first: Stream | None = first
        self._second = second

    def close(self) -> None:
        if self._first is not None:
            self._first.close()
        self._second.close()

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        if self._first is not None:
            block = await self._first.next_block(memory)
            if len(block):
                return block
            self._first.close()
            self._first = None
        return await self._second.next_block(memory)


async def discard(position: int, block: np.ndarray) -> None:
    """For a file that is only to be checked, or kept."""
