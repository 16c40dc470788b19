"""A GGUF of the Hub as a model: its header is looked at first, then it is fetched and kept."""

import os
from collections.abc import Sequence
from dataclasses import replace

from py_runtime.base.platform import IN_PAGE
from py_runtime.base.progress import Meter
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import Manifest, Source
from py_runtime.hub.address import HUB, HubAddress, parse_address
from py_runtime.hub.connection import open_connection
from py_runtime.hub.hub import Hub, HubModel
from py_runtime.hub.requests import HubRequests
from py_runtime.hub.shelf import open_shelf
from py_runtime.model.gguf_store import GgufStore
from py_runtime.weights.byte_source import ByteSource

# As Hugging Face's own tools call them.
ENDPOINT, TOKEN = "HF_ENDPOINT", "HF_TOKEN"


class HubStore(GgufStore):
    """What Model.load opens. A model that cannot be loaded is refused before its weights come."""

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
        """Where its files are kept; ranges of the Hub's until then."""
        return self._hub.sources(await self.found())

    async def manifest(self) -> Manifest:
        found = await self.found()
        manifest = await super().manifest()
        licence = found.licence if found.licence != "unknown" else manifest.source.licence
        return replace(manifest, source=Source(found.repository, found.page, licence))

    async def fetch(self, meter: Meter) -> None:
        """All of it. What its header said before that is forgotten: nobody had checked it."""
        found = await self.found()
        if not self._hub.is_whole(found):
            await self._hub.fetch(found, meter)
            self._model = None

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        await self.fetch(meter or Meter())
        return await super().open(meter)


async def hub_store(where: str) -> HubStore:
    """By its address. A page asks its user before it asks the Hub; whoever types a command has."""
    requests = None
    if not IN_PAGE:
        endpoint = os.environ.get(ENDPOINT) or HUB
        requests = HubRequests(endpoint, open_connection(), os.environ.get(TOKEN))
    return HubStore(Hub(await open_shelf(), requests), parse_address(where))
