"""The Hub as the engine uses it: what is kept comes first, the rest is listed, chosen, fetched."""

from dataclasses import dataclass

from py_runtime.base.errors import QuotaError, StorageError
from py_runtime.base.messages import message
from py_runtime.base.progress import DOWNLOAD, Meter
from py_runtime.folder.file_set import FileSet
from py_runtime.folder.manifest import FileFacts
from py_runtime.hub.address import HUB, MAIN, HubAddress, is_hub_address, parse_address
from py_runtime.hub.choice import Variant, choose, default_of, label_of, variants_of
from py_runtime.hub.download import Download
from py_runtime.hub.errors import HubConsentError
from py_runtime.hub.listing import HubFile, Repository
from py_runtime.hub.ranges import HubSource
from py_runtime.hub.requests import HubRequests
from py_runtime.hub.shelf import Shelf, is_whole, missing_bytes
from py_runtime.weights.byte_source import ByteSource

REVISION, LICENCE = "revision", "licence"  # notes of a kept model


@dataclass(frozen=True)
class HubModel:
    """One choice of a repository, at one commit."""

    repository: str
    commit: str
    revision: str  # that stood for the commit
    licence: str
    variant: Variant

    @property
    def url(self) -> str:
        """Under which it is kept: the same bytes whenever it is asked for."""
        return str(parse_address(self.repository).pinned(self.variant.files[0].path, self.commit))

    @property
    def page(self) -> str:
        """Where people read about it."""
        return f"{HUB}/{self.repository}"

    @property
    def files(self) -> FileSet:
        facts = {file.path: FileFacts(file.size, file.sha256) for file in self.variant.files}
        notes = {REVISION: self.revision, LICENCE: self.licence}
        return FileSet(self.variant.name, facts, notes)


class Hub:
    """`requests` is None where nobody has allowed to ask: then there is what is kept."""

    def __init__(self, shelf: Shelf, requests: HubRequests | None) -> None:
        self.shelf = shelf
        self._requests = requests

    async def repository(self, address: HubAddress) -> Repository:
        return await self._allowed().repository(address)

    async def find(self, address: HubAddress) -> HubModel:
        """What is kept or begun stays at its commit; only what is not is looked up."""
        kept = self._kept(address)
        if kept is not None:
            return kept
        found = await self.repository(address)
        return model_of(found, choose(found.name, variants_of(found.files), address.file), address)

    def is_whole(self, model: HubModel) -> bool:
        return is_whole(self.shelf, model.files)

    async def fetch(self, model: HubModel, meter: Meter) -> None:
        """Downloads what is not there, and checks it."""
        if self.is_whole(model):
            return
        requests = self._allowed()
        await self._check_room(model)
        await self.shelf.keep_set(model.url, model.files)
        facts = {file: FileFacts(file.size, file.sha256) for file in model.variant.files}
        missing = {file: f for file, f in facts.items() if not self.shelf.has(f)}
        for file in missing:
            meter.expect(DOWNLOAD, file.path, file.size)
        for file, wanted in missing.items():
            asked = requests.file(model.repository, model.commit, file.path)
            await Download(file.path, wanted, self.shelf, asked, meter).run()

    def sources(self, model: HubModel) -> list[ByteSource]:
        """Its files where they are kept; before that, ranges of the Hub's."""
        if self.is_whole(model):
            return [
                self.shelf.source(_base(file), FileFacts(file.size, file.sha256))
                for file in model.variant.files
            ]
        return list(self.remote_sources(model))

    def remote_sources(self, model: HubModel) -> list[HubSource]:
        requests = self._allowed()
        return [
            HubSource(file, requests.file(model.repository, model.commit, file.path))
            for file in model.variant.files
        ]

    def _allowed(self) -> HubRequests:
        if self._requests is None:
            raise HubConsentError()
        return self._requests

    async def _check_room(self, model: HubModel) -> None:
        needed = missing_bytes(self.shelf, model.files)
        try:
            free = await self.shelf.room_for(model.url, model.files)
        except StorageError as error:
            reason = error.wording
            raise StorageError(
                message("storage_refuses_download", name=model.variant.name, reason=reason)
            ) from None
        if needed > free:
            sizes = {"needed": needed, "free": max(free, 0)}
            raise QuotaError(message("download_too_large", name=model.variant.name, **sizes))

    def _kept(self, address: HubAddress) -> HubModel | None:
        found = [
            _from_set(url, files)
            for url, files in self.shelf.sets().items()
            if is_hub_address(url) and _fits(address, url, files)
        ]
        whole = [model for model in found if self.is_whole(model)]
        candidates = whole or found
        if not candidates:
            return None
        chosen = default_of([model.variant for model in candidates])
        return next(model for model in candidates if model.variant is chosen)


def model_of(found: Repository, variant: Variant, address: HubAddress) -> HubModel:
    """A choice of what was listed."""
    return HubModel(found.name, found.commit, address.revision or MAIN, found.licence, variant)


def _from_set(url: str, files: FileSet) -> HubModel:
    address = parse_address(url)
    listed = tuple(HubFile(path, f.size, f.sha256) for path, f in files.files.items())
    return HubModel(
        address.repository,
        address.revision or MAIN,
        files.notes.get(REVISION, MAIN),
        files.notes.get(LICENCE, "unknown"),
        Variant(files.name, label_of(files.name), listed),
    )


def _fits(address: HubAddress, url: str, files: FileSet) -> bool:
    """Whether what is kept under `url` is what is asked for."""
    kept = parse_address(url)
    revisions = (None, kept.revision, files.notes.get(REVISION))
    return (
        address.repository == kept.repository
        and (address.file is None or address.file in files.files)
        and address.revision in revisions
    )


def _base(file: HubFile) -> str:
    return file.path.rpartition("/")[2]
