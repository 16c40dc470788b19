"""A GGUF file on the Hub as a model: its header is read first, then it is fetched and kept."""

import os
from collections.abc import Sequence
from dataclasses import replace

from py_runtime.base.platform import IN_PAGE
from py_runtime.base.progress import Meter
from py_runtime.download.connection import open_connection
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import Manifest, Source
from py_runtime.hub.address import HUB, HubAddress, parse_address
from py_runtime.hub.hub import Hub, HubModel
from py_runtime.hub.requests import HubRequests
from py_runtime.hub.shelf import open_shelf
from py_runtime.model.gguf_store import GgufStore
from py_runtime.weights.byte_source import ByteSource

# As Hugging Face's own tools call them.
ENDPOINT, TOKEN = "HF_ENDPOINT", "HF_TOKEN"


class HubStore(GgufStore):
    """A Hub store for Model.load; a model that cannot run is refused before its weights come."""

    def __init__(self, hub: Hub, address: HubAddress) -> None:
        super().__init__(address.name, ())
        self._hub = hub
        self._address = address
        self._found: HubModel | None = None

    async def found(self) -> HubModel:
        if self._found is None:
            self._found = await self._hub.find(self._address)
            self.name = self._found.variant.name
        return self._found

    async def opened_sources(self) -> Sequence[ByteSource]:
        """Return the kept files, or ranges on the Hub until they are fetched."""
        return self._hub.sources(await self.found())

    async def manifest(self) -> Manifest:
        found = await self.found()
        manifest = await super().manifest()
        licence = found.licence if found.licence != "unknown" else manifest.source.licence
        return replace(manifest, source=Source(found.repository, found.page, licence))

    async def fetch(self, meter: Meter) -> None:
        """Fetch everything, and forget the header read before, which nothing had verified."""
        found = await self.found()
        if not self._hub.is_whole(found):
            await self._hub.fetch(found, meter)
            self._model = None

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        await self.fetch(meter or Meter())
        return await super().open(meter)


async def hub_store(where: str) -> HubStore:
    """Open a model by its address; a page asks its user first, a typed command is consent."""
    requests = None
    if not IN_PAGE:
        endpoint = os.environ.get(ENDPOINT) or HUB
        requests = HubRequests(endpoint, open_connection(), os.environ.get(TOKEN))
    return HubStore(Hub(await open_shelf(), requests), parse_address(where))
