"""The storage of this browser: models' files under their sha256, manifests under their address.

A file is written under another name and renamed once its hash is known to be right, so that
whatever has the name of a kept file was whole. A download that broke off stays under that other
name, and the next one goes on from there. Models share files; a file that no kept manifest refers
to any more is swept away. A file whose hash was seen to be right is marked by an empty one, whose
name holds the time of its last change: while that is right, the file need not be hashed again.

Where the user wants it and the browser can, sites share one copy of each file; another empty file
says that it is there.
"""

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Self

import numpy as np

from py_runtime.base.errors import StorageBusyError, StorageError
from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ModelError
from py_runtime.bridge.cross_origin import find_shared, share
from py_runtime.bridge.locks import SharedLock
from py_runtime.bridge.opfs import (
    StoredWriter,
    changed_at,
    create_stored_file,
    delete_stored_file,
    free_bytes,
    list_stored,
    open_stored,
    size_of,
    stored_file,
)
from py_runtime.bridge.stream import Stream, read_first
from py_runtime.folder.file_set import FileSet, parse_file_set
from py_runtime.folder.manifest import MAX_MANIFEST_BYTES, Manifest, parse_manifest
from py_runtime.folder.stored_names import BEGUN, FILE, MODEL

NOTE, PARTIAL, CHECKED = "note-", "partial-", "checked-"  # what further names begin with
ABANDONED_SECONDS = 60  # a partial file that nobody has written to for so long is nobody's
SHARED = "shared-"  # its sha256 and its bytes follow
SHARING = "sharing"  # while there is such a file, the user wants to share
FOLLOWING_SECONDS = 0.25  # between two looks at how far another tab is
TRIES, TRY_SECONDS = 40, 0.05  # to open a file whose writer was closed a moment ago
MAX_ENTRY_BYTES = 4 * MAX_MANIFEST_BYTES  # a manifest with escapes


@dataclass(frozen=True)
class StoredModel:
    """A model that this browser keeps, under the address it came from."""

    url: str  # of a folder, or made up for files from elsewhere
    manifest: Manifest | FileSet
    manifest_bytes: bytes


class Storage:
    """A Shelf; open it with `Storage.open()`. Its methods raise StorageError if it refuses."""

    def __init__(self, sizes: dict[str, int], changed: Mapping[str, float] | None = None) -> None:
        self._sizes = sizes  # bytes, by name, of every entry but what tabs are writing just now
        self._changed = dict(changed or {})  # in milliseconds; of files
        self._models: dict[str, StoredModel] = {}  # by entry

    @classmethod
    async def open(cls) -> Self:
        rows = await list_stored()
        long_ago = 1000 * (time.time() - ABANDONED_SECONDS)
        storage = cls(
            {
                name: size
                for name, size, changed in rows
                if not name.startswith(PARTIAL) or changed < long_ago
            },
            {name: changed for name, _, changed in rows},
        )
        for entry in [name for name in storage._sizes if name.startswith(MODEL)]:
            try:
                storage._models[entry] = await _read_model(entry)
            except (ValueError, KeyError, TypeError, ModelError, StorageError):
                await storage._delete([entry])  # no engine can load it
        for mark in [name for name in storage._sizes if name.startswith(SHARED)]:
            sha256, _, size = mark.removeprefix(SHARED).partition("-")
            if not await storage._find_shared(FileFacts(int(size), sha256)):
                await storage._delete([mark])  # the browser has cleared it
        return storage

    # Looking -----------------------------------------------------------------------------------

    @property
    def models(self) -> list[StoredModel]:
        return list(self._models.values())

    def find_model(self, url: str) -> StoredModel | None:
        return self._models.get(_entry_of(url))

    def has(self, facts: FileFacts) -> bool:
        return self._sizes.get(FILE + facts.sha256) == facts.size

    async def finds(self, facts: FileFacts) -> bool:
        """Return whether a file is kept here, or by another site that shares it."""
        return self.has(facts) or (self.is_sharing and await self._find_shared(facts))

    def was_checked(self, facts: FileFacts) -> bool:
        """Return whether a kept file's hash was right, and nobody has written to it since."""
        return self._mark_of(facts) in self._sizes

    def begun_bytes(self, facts: FileFacts) -> int:
        """Return how much of a file a download has left that broke off."""
        return self._sizes.get(BEGUN + facts.sha256, 0)

    def kept_bytes(self, manifest: Manifest | FileSet) -> int:
        """Return how many bytes of a model need not be downloaded again."""
        return sum(
            facts.size if self.has(facts) else min(self.begun_bytes(facts), facts.size)
            for facts in manifest.files.values()
        )

    def is_whole(self, manifest: Manifest | FileSet) -> bool:
        return all(map(self.has, manifest.files.values()))

    async def room_for(self, url: str, manifest: Manifest | FileSet) -> int:
        """Return the bytes that may be added once `manifest` replaces what `url` had before."""
        others = [model.manifest for model in self.models if model.url != url]
        stale = sum(self._sizes[name] for name in self._unused([manifest, *others]))
        return await free_bytes() + stale

    async def open_file(self, facts: FileFacts) -> Stream:
        return await open_stored(FILE + facts.sha256)

    async def open_begun(self, facts: FileFacts) -> Stream:
        """Open what is there of a file that broke off."""
        return await open_stored(BEGUN + facts.sha256)

    # Keeping -----------------------------------------------------------------------------------

    async def keep_manifest(self, url: str, manifest: Manifest | FileSet, data: bytes) -> None:
        """Keep the files of this manifest for this address from now on, and no others."""
        known = self.find_model(url)
        if known is None or known.manifest_bytes != data:
            text = json.dumps({"url": url, "manifest": data.decode()}).encode()
            writer = self.create_partial()
            try:
                await writer.write(np.frombuffer(text, np.uint8))
                await writer.keep_as(_entry_of(url))
            except BaseException:
                await writer.drop()
                raise
            self._models[_entry_of(url)] = StoredModel(url, manifest, data)
        await self.sweep()

    def create_partial(self) -> "PartialFile":
        """Create a file to be written, under a name that no other tab uses."""
        return PartialFile(self, PARTIAL + secrets.token_hex(8))

    async def begin(self, facts: FileFacts, at: int) -> "PartialFile":
        """Open the file of a download behind its first `at` bytes, so that it can go on later.

        If another tab is writing to it, a new download gets a file of its own.
        """
        for _ in range(TRIES):
            try:
                return await self._begin_now(facts, at)
            except StorageBusyError:
                if not at:
                    return self.create_partial()
            await asyncio.sleep(TRY_SECONDS)  # a closed tab gives back its turn, then its file
        raise StorageBusyError(
            "another tab is downloading the same file: let it finish there, then load it here"
        )

    async def _begin_now(self, facts: FileFacts, at: int) -> "PartialFile":
        partial = PartialFile(self, BEGUN + facts.sha256, at)
        try:
            await partial.wait_until_open()
        except StorageBusyError:  # another tab has it
            raise
        except BaseException:  # refused, or cancelled: neither an open file nor an empty one stays
            await partial.leave()
            raise
        return partial

    @asynccontextmanager
    async def take_turn(self, facts: FileFacts, tell: Callable[[int], None]) -> AsyncIterator[None]:
        """Wait until no other tab downloads the file, while `tell` hears how far that one is.

        What the other tab has left is known afterwards.
        """
        lock = SharedLock(f"inpage {BEGUN}{facts.sha256}")
        following = asyncio.ensure_future(_follow(BEGUN + facts.sha256, tell))
        try:
            await lock.acquire()
        finally:
            following.cancel()
        try:
            for name in (FILE + facts.sha256, BEGUN + facts.sha256):
                self._sizes.pop(name, None)
                if size := await size_of(name):
                    self._sizes[name], self._changed[name] = size, await changed_at(name)
            await self.finds(facts)
            yield
        finally:
            lock.release()

    # Sharing -----------------------------------------------------------------------------------

    @property
    def is_sharing(self) -> bool:
        """Return whether the user wants sites to share files."""
        return SHARING in self._sizes

    async def allow_sharing(self, is_allowed: bool) -> None:
        """Share all files that are kept, and those that come; or none from now on."""
        if not is_allowed:
            return await self._delete([SHARING])
        await create_stored_file(SHARING)
        self._sizes[SHARING] = 0
        for model in self.models:
            for facts in model.manifest.files.values():
                if self.has(facts):
                    await self.share(facts)

    async def share(self, facts: FileFacts) -> None:
        """Move a kept file to where all sites read it, if the user wants that; else it stays."""
        name = FILE + facts.sha256
        if not self.is_sharing or _shared_mark(facts) in self._sizes:
            return
        if await share(facts.sha256, await stored_file(name)):
            await self._note_shared(facts)
            await delete_stored_file(name)
            self._changed[name] = await changed_at(name)
            await self.mark_checked(facts)

    async def _find_shared(self, facts: FileFacts) -> bool:
        """Return whether all sites have a file; then it is kept here, too."""
        found = await find_shared(facts.sha256)
        if found is None or int(found.size) != facts.size:
            return False
        await self._note_shared(facts)
        self._sizes[FILE + facts.sha256] = facts.size
        self._changed[FILE + facts.sha256] = float(found.lastModified)
        return True

    async def _note_shared(self, facts: FileFacts) -> None:
        await create_stored_file(_shared_mark(facts))
        self._sizes[_shared_mark(facts)] = 0

    async def mark_checked(self, facts: FileFacts) -> None:
        """Note that a kept file's bytes are right; if storage refuses, it is hashed again."""
        name = FILE + facts.sha256
        with suppress(StorageError):
            if name not in self._changed:  # it came since storage was opened
                self._changed[name] = await changed_at(name)
            mark = self._mark_of(facts)
            assert mark is not None, "it is known when it was changed"
            await create_stored_file(mark)
            self._sizes[mark] = 0

    def _mark_of(self, facts: FileFacts) -> str | None:
        """Return the name of the mark; None if it is not known when the file was changed."""
        changed = self._changed.get(FILE + facts.sha256)
        return None if changed is None else f"{CHECKED}{facts.sha256}@{changed:.0f}"

    # Deleting ----------------------------------------------------------------------------------

    async def forget(self, model: StoredModel) -> None:
        del self._models[_entry_of(model.url)]
        await self._delete([_entry_of(model.url)])
        await self.sweep()

    async def drop(self, facts: FileFacts) -> None:
        marks = [name for name in self._sizes if name.startswith(CHECKED + facts.sha256)]
        await self._delete([FILE + facts.sha256, _shared_mark(facts), *marks])

    async def drop_begun(self, facts: FileFacts) -> None:
        await self._delete([BEGUN + facts.sha256])

    async def sweep(self) -> None:
        """Delete what no manifest refers to, and what interrupted loads left behind."""
        await self._delete(self._unused([model.manifest for model in self.models]))

    def _unused(self, manifests: Iterable[Manifest | FileSet]) -> list[str]:
        files = [facts for manifest in manifests for facts in manifest.files.values()]
        wanted = {kind + facts.sha256 for facts in files for kind in (FILE, BEGUN)}
        wanted |= {SHARING, *map(_shared_mark, files)}
        wanted |= {mark for facts in files if (mark := self._mark_of(facts))}
        return [n for n in self._sizes if n not in wanted and not n.startswith((MODEL, NOTE))]

    async def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            # Another tab writes to it, or has deleted it: then it is not ours to delete.
            with suppress(StorageError):
                await delete_stored_file(name)
            self._sizes.pop(name, None)
            self._changed.pop(name, None)


async def _follow(name: str, tell: Callable[[int], None]) -> None:
    """Tell how large a file is, again and again until cancelled."""
    while True:
        await asyncio.sleep(FOLLOWING_SECONDS)
        tell(await size_of(name))


class PartialFile:
    """A Partial in this browser's storage."""

    def __init__(self, storage: Storage, name: str, size: int = 0) -> None:
        self._storage = storage
        self._name = name
        self._size = size  # of what is there; writing goes on behind it
        self._is_open = True
        self._writer = StoredWriter(name)

    async def wait_until_open(self) -> None:
        """Wait until the file is open; raise StorageError if another tab is writing to it."""
        await self._writer.opened()

    async def write(self, block: np.ndarray) -> None:
        await self._writer.write(self._size, block)
        self._size += block.nbytes

    async def keep(self, facts: FileFacts) -> None:
        if self._storage.has(facts):  # another file of the same bytes was quicker
            await self.drop()
            return
        try:
            await self._writer.flush()
            await self.keep_as(FILE + facts.sha256)
        except StorageBusyError:  # another tab is keeping the same bytes just now
            await self.drop()
        else:
            await self._storage.mark_checked(facts)
            await self._storage.share(facts)

    async def keep_as(self, name: str) -> None:
        await self._close()
        await self._writer.rename(name)
        self._storage._sizes.pop(self._name, None)
        self._storage._sizes[name] = self._size

    async def leave(self) -> None:
        """Let the file lie; drop it if it is empty, or if nobody would find it again."""
        if not self._name.startswith(BEGUN) or not self._size:
            return await self.drop()
        with suppress(StorageError):
            await self._close()
            self._storage._sizes[self._name] = self._size

    async def drop(self) -> None:
        try:
            await self._close()
        except StorageBusyError:  # another tab has it
            return
        except StorageError:
            pass  # it could not be opened, and was created nevertheless
        with suppress(StorageError):
            await delete_stored_file(self._name)
            self._storage._sizes.pop(self._name, None)

    async def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._writer.close()


def _shared_mark(facts: FileFacts) -> str:
    return f"{SHARED}{facts.sha256}-{facts.size}"


def _entry_of(url: str) -> str:
    return MODEL + hashlib.sha256(url.encode()).hexdigest()


async def _read_model(entry: str) -> StoredModel:
    facts = json.loads(await read_first(await open_stored(entry), MAX_ENTRY_BYTES))
    data = facts["manifest"].encode()
    url = facts["url"]
    parse = parse_manifest if url.startswith("http") else parse_file_set
    return StoredModel(url, parse(data), data)
