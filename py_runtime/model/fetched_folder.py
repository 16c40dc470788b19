"""A model folder at an address, natively; its files are kept in the user's cache folder."""

from pathlib import Path

from py_runtime.base.errors import QuotaError
from py_runtime.base.progress import DOWNLOAD, Meter
from py_runtime.base.sizes import in_words
from py_runtime.download.download import Download
from py_runtime.download.file_check import ExpectedFile
from py_runtime.download.host import HostRequests
from py_runtime.folder.file_set import FileSet
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import MANIFEST, MAX_MANIFEST_BYTES, Manifest, parse_manifest
from py_runtime.hub.hosted_source import HostedSource
from py_runtime.hub.native_shelf import NativeShelf
from py_runtime.hub.shelf import missing_bytes
from py_runtime.model.folder_token_rows import LocalFolder


class FetchedFolder(LocalFolder):
    """A store for Model.load; the manifest is requested each time, the rest is fetched once."""

    def __init__(self, where: str) -> None:
        super().__init__(Path())  # known once it is fetched
        self._url = f"{where.rstrip('/')}/"
        self._requests = HostRequests()
        self._shelf = NativeShelf.of_user()
        self._manifest_bytes = b""
        self._manifest: Manifest | None = None

    async def manifest(self) -> Manifest:
        if self._manifest is None:
            source = HostedSource(self._url + MANIFEST, self._requests)
            nbytes = min(await source.size(), MAX_MANIFEST_BYTES + 1)
            self._manifest_bytes = await source.read(0, nbytes)
            self._manifest = parse_manifest(self._manifest_bytes)
        return self._manifest

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        manifest = await self.manifest()
        files = FileSet(manifest.name, dict(manifest.files), {})
        await self._fetch(files, meter or Meter())
        self.folder = self._shelf.as_folder(files, self._manifest_bytes)
        return await super().open(meter)

    async def _fetch(self, files: FileSet, meter: Meter) -> None:
        """Fetch what is missing, checked against the manifest."""
        needed = missing_bytes(self._shelf, files)
        free = await self._shelf.room_for(self._url, files)
        if needed > free:
            raise QuotaError(
                f"{files.name} needs {in_words(needed)} in your cache folder, whose disk has "
                f"{in_words(free)} left"
            )
        missing = {name: f for name, f in files.files.items() if not self._shelf.has(f)}
        for name, facts in missing.items():
            meter.expect(DOWNLOAD, name, facts.size)
        for name, facts in missing.items():
            expected = ExpectedFile(name, facts, f"its {MANIFEST} lists")
            remote = self._requests.file(self._url + name)
            await Download(expected, remote, self._shelf, meter).run()
