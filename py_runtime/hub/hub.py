"""The Hub as the engine uses it: kept models come first, others are listed, chosen, fetched."""

from dataclasses import dataclass

from py_runtime.base.errors import QuotaError, StorageError
from py_runtime.base.messages import message
from py_runtime.base.progress import DOWNLOAD, Meter
from py_runtime.download.download import Download
from py_runtime.download.file_check import ExpectedFile
from py_runtime.folder.file_set import FileSet
from py_runtime.gguf.projector_names import label_of
from py_runtime.hub.address import HUB, MAIN, HubAddress, is_hub_address, parse_address
from py_runtime.hub.choice import Variant, choose, default_of, variants_of
from py_runtime.hub.errors import HubConsentError
from py_runtime.hub.listing import FoundRepository, HubFile, Repository
from py_runtime.hub.ranges import HubSource
from py_runtime.hub.requests import HubRequests
from py_runtime.hub.shelf import HubShelf, is_whole, missing_bytes
from py_runtime.weights.byte_source import ByteSource

REVISION, LICENCE = "revision", "licence"  # notes of a kept model
DESCRIBED = "the Hub lists"


@dataclass(frozen=True)
class HubModel:
    """A choice of a repository's files, at one commit."""

    repository: str
    commit: str
    revision: str  # that stood for the commit
    licence: str
    variant: Variant

    @property
    def url(self) -> str:
        """The address it is kept under, which stands for the same bytes forever."""
        return str(parse_address(self.repository).pinned(self.variant.files[0].path, self.commit))

    @property
    def page(self) -> str:
        """The page where people read about it."""
        return f"{HUB}/{self.repository}"

    @property
    def files(self) -> FileSet:
        facts = {file.path: file.facts for file in self.variant.files}
        notes = {REVISION: self.revision, LICENCE: self.licence}
        return FileSet(self.variant.name, facts, notes)


class Hub:
    """The Hub, or only what is kept of it: `requests` is None if the user has not allowed any."""

    def __init__(self, shelf: HubShelf, requests: HubRequests | None) -> None:
        self.shelf = shelf
        self._requests = requests

    async def list_repository(self, address: HubAddress) -> Repository:
        return await self._allowed().list_repository(address)

    async def search(self, words: str) -> list[FoundRepository]:
        return await self._allowed().search(words)

    async def find(self, address: HubAddress) -> HubModel:
        """Find a model on the shelf, at the commit it was begun at, else on the Hub."""
        kept = self._find_kept(address)
        if kept is not None:
            return kept
        found = await self.list_repository(address)
        return model_of(found, choose(found.name, variants_of(found.files), address.file), address)

    def is_whole(self, model: HubModel) -> bool:
        return is_whole(self.shelf, model.files)

    async def fetch(self, model: HubModel, meter: Meter) -> None:
        """Download what is missing, and check it."""
        if self.is_whole(model):
            return
        requests = self._allowed()
        await self._check_room(model)
        await self.shelf.keep_set(model.url, model.files)
        missing = [f for f in model.variant.files if not self.shelf.has(f.facts)]
        for file in missing:
            meter.expect(DOWNLOAD, file.path, file.size)
        for file in missing:
            expected = ExpectedFile(file.path, file.facts, DESCRIBED)
            remote = requests.file(model.repository, model.commit, file.path)
            await Download(expected, remote, self.shelf, meter).run()

    def sources(self, model: HubModel) -> list[ByteSource]:
        """Return the kept files; until they are whole, ranges of the Hub's."""
        if self.is_whole(model):
            files = model.variant.files
            return [self.shelf.source_of(_base(file), file.facts) for file in files]
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

    def _find_kept(self, address: HubAddress) -> HubModel | None:
        found = [
            _parse_set(url, files)
            for url, files in self.shelf.kept_sets().items()
            if is_hub_address(url) and _fits(address, url, files)
        ]
        whole = [model for model in found if self.is_whole(model)]
        candidates = whole or found
        if not candidates:
            return None
        chosen = default_of([model.variant for model in candidates])
        return next(model for model in candidates if model.variant is chosen)


def model_of(found: Repository, variant: Variant, address: HubAddress) -> HubModel:
    """Return a model that was chosen from a repository's list."""
    return HubModel(found.name, found.commit, address.revision or MAIN, found.licence, variant)


def _parse_set(url: str, files: FileSet) -> HubModel:
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
    """Return whether the model kept under `url` is the one that `address` asks for."""
    kept = parse_address(url)
    revisions = (None, kept.revision, files.notes.get(REVISION))
    return (
        address.repository == kept.repository
        and (address.file is None or address.file in files.files)
        and address.revision in revisions
    )


def _base(file: HubFile) -> str:
    return file.path.rpartition("/")[2]
