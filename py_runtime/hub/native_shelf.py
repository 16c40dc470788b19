"""The native shelf: the user's cache folder."""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from pathlib import Path

import numpy as np
import platformdirs

from py_runtime.base.errors import StorageError
from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ManifestError
from py_runtime.folder.file_set import FileSet, parse_file_set
from py_runtime.folder.manifest import MANIFEST
from py_runtime.folder.stored_names import BEGUN, FILE, MODEL
from py_runtime.weights.byte_source import FileSource

FOLDER = "folder-"


class NativeShelf:
    """A HubShelf."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of_user(cls) -> "NativeShelf":
        return cls(platformdirs.user_cache_path("inpage") / "hub")

    def kept_sets(self) -> Mapping[str, FileSet]:
        found: dict[str, FileSet] = {}
        for path in sorted(self._folder.glob(f"{MODEL}*")):
            try:
                url, _, text = path.read_bytes().partition(b"\n")
                found[url.decode()] = parse_file_set(text)
            except (OSError, ValueError, ManifestError):
                continue  # anybody's; it is written again where it is needed
        return found

    def has(self, facts: FileFacts) -> bool:
        return _size(self._path(FILE, facts)) == facts.size

    def begun_bytes(self, facts: FileFacts) -> int:
        return _size(self._path(BEGUN, facts))

    async def room_for(self, url: str, files: FileSet) -> int:
        self._make()
        return shutil.disk_usage(self._folder).free

    async def keep_set(self, url: str, files: FileSet) -> None:
        self._make()
        path = self._folder / f"{MODEL}{hashlib.sha256(url.encode()).hexdigest()}"
        fresh = path.with_name(f".{path.name}-{os.getpid()}")
        try:
            fresh.write_bytes(url.encode() + b"\n" + files.to_json())
            fresh.replace(path)
        except OSError as error:
            raise _refused(path, error) from None

    def take_turn(
        self, facts: FileFacts, tell: Callable[[int], None]
    ) -> AbstractAsyncContextManager[None]:
        """Do nothing: processes do not wait for each other."""
        return nullcontext()

    async def begin(self, facts: FileFacts, at: int) -> "_Partial":
        self._make()
        return _Partial(self._path(BEGUN, facts), self._path(FILE, facts), at)

    async def open_begun(self, facts: FileFacts) -> "_OpenFile":
        return _OpenFile(self._path(BEGUN, facts))

    async def drop_begun(self, facts: FileFacts) -> None:
        self._path(BEGUN, facts).unlink(missing_ok=True)

    def source_of(self, name: str, facts: FileFacts) -> FileSource:
        source = FileSource(self._path(FILE, facts))
        source.name = name
        return source

    def as_folder(self, files: FileSet, manifest: bytes) -> Path:
        """Link kept files under their own names, as a model folder has them; none is copied."""
        folder = self._folder / f"{FOLDER}{hashlib.sha256(manifest).hexdigest()}"
        try:
            folder.mkdir(exist_ok=True)
            for name, facts in files.files.items():
                if _size(folder / name) != facts.size:
                    (folder / name).unlink(missing_ok=True)
                    _link(self._path(FILE, facts), folder / name)
            (folder / MANIFEST).write_bytes(manifest)
        except OSError as error:
            raise _refused(folder, error) from None
        return folder

    def _path(self, kind: str, facts: FileFacts) -> Path:
        return self._folder / f"{kind}{facts.sha256}"

    def _make(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _refused(self._folder, error) from None


class _Partial:
    """A Partial; what another process writes meanwhile does no harm: the hash would show it."""

    def __init__(self, path: Path, whole: Path, at: int) -> None:
        self._path = path
        self._whole = whole
        try:
            self._file = path.open("r+b" if path.exists() else "w+b")
            self._file.truncate(at)
            self._file.seek(at)
        except OSError as error:
            raise _refused(path, error) from None

    async def write(self, block: np.ndarray) -> None:
        try:
            self._file.write(block.data)
        except OSError as error:
            raise _refused(self._path, error) from None

    async def keep(self, facts: FileFacts) -> None:
        try:
            self._file.close()
            self._path.replace(self._whole)
        except OSError as error:
            raise _refused(self._whole, error) from None

    async def drop(self) -> None:
        await self.leave()
        self._path.unlink(missing_ok=True)

    async def leave(self) -> None:
        with suppress(OSError):  # a full disk, which does not take the last bytes either
            self._file.close()


class _OpenFile:
    """A file on the disk as FileBlocks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise _unreadable(path, error) from None

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        try:
            return memory[: self._file.readinto(memory.data)]
        except OSError as error:
            raise _unreadable(self._path, error) from None

    def close(self) -> None:
        self._file.close()


def _link(kept: Path, path: Path) -> None:
    try:
        path.hardlink_to(kept)
    except OSError:  # not every file system has such links
        shutil.copyfile(kept, path)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _refused(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be written: {error.strerror or error}")


def _unreadable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be read: {error.strerror or error}")
