"""A model folder behind a URL, in the page: its small files, and the headers of the others."""

from js import URL, location

from py_runtime.base import notices
from py_runtime.base.concurrency import take_turns, together
from py_runtime.base.errors import NetworkError, StorageError
from py_runtime.base.messages import message
from py_runtime.base.model_errors import ModelError, ModelFileError
from py_runtime.base.progress import DOWNLOAD, Meter
from py_runtime.bridge.stream import open_url, read_first
from py_runtime.folder.browser_storage import Storage
from py_runtime.folder.delivery import Delivery
from py_runtime.folder.layout import ModelFolder, combine_model
from py_runtime.folder.manifest import MANIFEST, MAX_MANIFEST_BYTES, Manifest, parse_manifest
from py_runtime.folder.safetensors_header import (
    LENGTH_BYTES,
    header_end,
    parse_safetensors_header,
)

FIRST_BYTES = 1 << 16  # most headers are shorter


class SiteFolder:
    """A model folder behind a URL."""

    end_tokens: frozenset[int] = frozenset()

    def __init__(self, where: str) -> None:
        self.url = str(URL.new(where if where.endswith("/") else f"{where}/", location.href).href)
        self._manifest: Manifest | None = None
        self._small: dict[str, bytes] = {}  # files that were read before they were asked for
        self.delivery: Delivery  # and the headers of files with tensors, once it was opened
        self.headers: dict[str, bytes]

    async def manifest(self) -> Manifest:
        """Read the site's manifest, or the one that is kept if the network does not answer."""
        if self._manifest is None:
            self._storage = await self._open_storage()
            self._manifest_bytes = await self._read_manifest()
            self._manifest = parse_manifest(self._manifest_bytes)
        return self._manifest

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        """Read the small files and the headers; the weights stay where they are."""
        manifest, meter = await self.manifest(), meter or Meter()
        keeping = await self._prepare_storage(manifest)
        self.delivery = Delivery(self.url, manifest, self._storage, keeping)
        for file in self.delivery.missing(manifest.files):
            meter.expect(DOWNLOAD, file, manifest.files[file].size)
        try:
            return await self._combine(manifest, meter)
        except ModelError:
            if not await self.delivery.drop_damaged():
                raise
            return await self._combine(manifest, meter)

    async def read(self, model: ModelFolder, file: str) -> bytes:
        if file not in model.manifest.files:
            raise ModelFileError(f"{MANIFEST}.files has no '{file}'")
        if file in self._small:
            return self._small.pop(file)
        return await self.delivery.read(file, Meter())

    async def _read_manifest(self) -> bytes:
        try:
            return await fetch_bytes(self.url + MANIFEST, MAX_MANIFEST_BYTES + 1)
        except NetworkError:
            kept = self._storage.find_model(self.url) if self._storage is not None else None
            if kept is None:
                raise
            return kept.manifest_bytes

    async def _combine(self, manifest: Manifest, meter: Meter) -> ModelFolder:
        with_header = [*manifest.weights, *filter(None, [manifest.goldens])]
        small = [f for f in manifest.files if f not in with_header and f not in self._small]
        files = await together(
            *(self.delivery.read(file, meter) for file in small),
            *(self._read_header(file, manifest.files[file].size) for file in with_header),
        )
        self._small.update(zip(small, files, strict=False))
        self.headers = dict(zip(with_header, files[len(small) :], strict=True))
        entries = {}
        for file, header in self.headers.items():
            entries[file] = parse_safetensors_header(file, header, manifest.files[file].size)
            await take_turns()
        return combine_model(manifest, self._small.pop(manifest.graph), entries)

    async def _read_header(self, file: str, file_size: int) -> bytes:
        start = await self.delivery.read_first(file, min(FIRST_BYTES, file_size))
        end = header_end(file, start[:LENGTH_BYTES], file_size)
        if end > len(start):
            start = await self.delivery.read_first(file, end)
        return start[:end]

    # Storage -----------------------------------------------------------------------------------

    async def _open_storage(self) -> Storage | None:
        try:
            return await Storage.open()
        except StorageError as error:
            notices.post("storage", message("storage_refuses_page", reason=error.wording))
            return None

    async def _prepare_storage(self, manifest: Manifest) -> bool:
        """Return whether there is room for the files that are not kept yet."""
        if self._storage is None:
            return False
        needed = manifest.size - self._storage.kept_bytes(manifest)
        try:
            free = await self._storage.room_for(self.url, manifest)
            if needed > max(free, 0):
                sizes = {"needed_bytes": needed, "free_bytes": free}
                said = message("storage_too_small", name=manifest.name, **sizes)
                notices.post("storage", said, **sizes)
                return False
            await self._storage.keep_manifest(self.url, manifest, self._manifest_bytes)
        except StorageError as error:
            reason = error.wording
            said = message("storage_refuses_model", name=manifest.name, reason=reason)
            notices.post("storage", said)
            return False
        return True


async def fetch_bytes(url: str, max_bytes: int = MAX_MANIFEST_BYTES) -> bytes:
    """Fetch a small file as it is now, or its first bytes; nothing of it is kept."""
    return await read_first(open_url(url, cache="no-cache"), max_bytes)
