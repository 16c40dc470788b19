"""The part of a model that sees: images become rows, which stand in for embeddings of tokens."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from py_runtime.base.progress import Meter
from py_runtime.gguf.tower import Tower
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph import Graph
from py_runtime.vision.image_token import ImageToken
from py_runtime.vision.picture import Picture
from py_runtime.vision.tiles import tiles_of

KEPT_BYTES = 64 << 20  # of rows: more than fit in most contexts


class ImageEncoder:
    """A tower on a device, from the first image on, and the rows of the last images."""

    def __init__(self, tower: Tower, place: Callable[[], tuple[Device, KernelTarget]]) -> None:
        self.config = tower.config
        self._tower = tower
        self._place = place
        self._graph: Graph | None = None
        self._rows: OrderedDict[bytes, np.ndarray] = OrderedDict()  # by digests, the last used last
        self._turn = asyncio.Lock()

    async def read(self, tokens: Sequence[int]) -> list[np.ndarray]:
        """Return where these tokens are rows of images, bool [1, S, 1], and the rows [1, S, W]."""
        is_image = np.zeros((1, len(tokens), 1), np.bool_)
        rows = np.zeros((1, len(tokens), self.config.out), np.float32)
        for at, token in enumerate(tokens):
            if isinstance(token, ImageToken):
                is_image[0, at] = True
                rows[0, at] = (await self.rows(token.picture))[token.row]
        return [is_image, rows]

    async def rows(self, picture: Picture) -> np.ndarray:
        """Return what the tower makes of a picture: f32 [rows, W], tile by tile."""
        async with self._turn:
            found = self._rows.get(picture.digest)
            if found is None:
                found = await self._computed(picture)
                self._keep(picture.digest, found)
            self._rows.move_to_end(picture.digest)
            return found

    async def _computed(self, picture: Picture) -> np.ndarray:
        tiles = tiles_of(self.config, await picture.pixels(), picture.is_coarse)
        graph = await self._loaded()
        parts = []
        for tile in tiles:
            (rows,) = await graph.run([tile])
            parts.append(rows[0])
        return np.concatenate(parts)

    async def _loaded(self) -> Graph:
        device, target = self._place()
        if self._graph is None or self._graph.device is not device:
            self.unload()
            tower = self._tower
            self._graph = await Graph.load(device, tower.program, tower.constants, Meter(), target)
        return self._graph

    def _keep(self, digest: bytes, rows: np.ndarray) -> None:
        self._rows[digest] = rows
        while len(self._rows) > 1 and sum(r.nbytes for r in self._rows.values()) > KEPT_BYTES:
            self._rows.popitem(last=False)

    def unload(self) -> None:
        """Free the device's memory; the next image that is new takes it again."""
        if self._graph is not None:
            self._graph.unload()
        self._graph = None
