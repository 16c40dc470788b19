"""The part of a model that sees: images become rows, which stand in for embeddings of tokens."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from py_runtime.base.progress import Meter
from py_runtime.gguf.tower import Tower
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph import Graph
from py_runtime.vision.image_token import ImageToken, begins
from py_runtime.vision.picture import Picture

KEPT_BYTES = 64 << 20  # of rows: more than fit in most contexts


class ImageEncoder:
    """A tower on a device, from the first image on, and the rows of the last images."""

    def __init__(self, tower: Tower, place: Callable[[], tuple[Device, KernelTarget]]) -> None:
        self.sight = tower.sight
        self.seconds = 0.0
        self._tower = tower
        self._place = place
        self._graph: Graph | None = None
        self._rows: OrderedDict[bytes, np.ndarray] = OrderedDict()  # by digests, the last used last
        self._turn = asyncio.Lock()

    async def read(self, tokens: Sequence[int], before: Sequence[int]) -> list[np.ndarray]:
        """Return what the decoder takes besides these tokens, which follow others.

        Where they are rows of images, bool [1, S, 1], and the rows [1, S, columns]; then, by the
        family, how many first ones see each other [1, 1, 1], and the places of all [1, S, 3].
        """
        is_image = np.zeros((1, len(tokens), 1), np.bool_)
        rows = np.zeros((1, len(tokens), self.sight.columns), np.float32)
        for at, token in enumerate(tokens):
            if isinstance(token, ImageToken):
                is_image[0, at] = True
                rows[0, at] = (await self.rows(token.picture))[token.row]
        given = [is_image, rows]
        if self.sight.whole:
            given.append(np.full((1, 1, 1), self._together(tokens)))
        if self.sight.has_places:
            given.append(self._places(tokens, self.shift(before)))
        return given

    def begin_of_image(self, tokens: Sequence[int], at: int) -> int:
        """Return where an image begins that must be computed whole and has a row at `at`."""
        token = tokens[at] if self.sight.whole and at < len(tokens) else None
        return at - token.row if isinstance(token, ImageToken) else at

    def end_of_chunk(self, tokens: Sequence[int], start: int, end: int) -> int:
        """Return where a call ends that begins at `start` and should end at `end`.

        Images whose rows see each other are computed whole, each at the beginning of a call.
        """
        if not self.sight.whole:
            return end
        first = start + self._together(tokens[start:])
        following = (at for at in range(max(first, start + 1), end) if begins(tokens[at]))
        return next(following, max(first, end))

    def _together(self, tokens: Sequence[int]) -> int:
        """Return how many first tokens are the rows of one image."""
        first = tokens[0] if tokens else None
        return self.sight.rows_of(first.picture) if isinstance(first, ImageToken) else 0

    def shift(self, tokens: Sequence[int]) -> int:
        """Return how far the place of what follows these tokens lies from its position."""
        if not self.sight.has_places:
            return 0
        shift = 0
        for token in tokens:
            if isinstance(token, ImageToken):
                rows = self.sight.rows_of(token.picture)
                shift += (token.row == rows - 1) * (self._span(token.picture) - rows)
        return shift

    def _span(self, picture: Picture) -> int:
        """Return how many places a picture takes: those of its longer side."""
        return int(self.sight.places_of(picture).max()) + 1

    def _places(self, tokens: Sequence[int], shift: int) -> np.ndarray:
        """Return the places of tokens, from the first one's position on: i64 [1, S, 3]."""
        places = np.arange(len(tokens))[:, None].repeat(3, axis=1) + shift
        for at, token in enumerate(tokens):
            if isinstance(token, ImageToken):
                # What comes before the image has been shifted; its rows lie side by side.
                own = self.sight.places_of(token.picture)
                places[at] += own[token.row] - token.row
                if token.row == len(own) - 1:
                    places[at + 1 :] += self._span(token.picture) - len(own)
        return places[None]

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
        began = time.perf_counter()
        image = await picture.pixels()
        calls = self.sight.calls_of(image, picture.is_coarse)
        graph = await self._loaded()
        results = [await graph.run(inputs) for inputs in calls]
        rows = self.sight.rows_from(results, image, picture.is_coarse)
        self.seconds += time.perf_counter() - began
        return rows

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
