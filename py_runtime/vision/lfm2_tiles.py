"""An image as LFM2-VL takes it: the whole in patches of its own shape, or tiles and the whole."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from py_runtime.vision.resample import BILINEAR, resized
from py_runtime.vision.sight import check_sizes, fault

MAX_TILES, MAX_TILE, MAX_ROWS = 64, 1 << 11, 1 << 12
TOLERANCES = (1.0, 100.0)


@dataclass(frozen=True, kw_only=True)
class Cut:
    """The cut of one image: tiles side by side, none where the whole is all; rows of the whole."""

    lines: int
    columns: int
    whole: tuple[int, int]  # lines and columns of rows

    @property
    def tiles(self) -> int:
        return self.lines * self.columns


@dataclass(frozen=True, kw_only=True)
class Cutting:
    """The numbers of a processor, as transformers has them where files are silent."""

    unit: int  # pixels of a row's side
    tile: int = 512  # pixels of a tile's side
    least_tiles: int = 2
    most_tiles: int = 10  # 1: no image is cut
    least_rows: int = 64  # of the whole
    most_rows: int = 256
    tolerance: float = 2.0  # an image with so many times the most pixels is cut
    has_whole: bool = True  # behind the tiles

    @property
    def tile_side(self) -> int:
        """Return how many rows lie side by side in a tile."""
        return self.tile // self.unit

    @property
    def rows_at_once(self) -> int:
        """Return the most rows that a call gives."""
        return max(self.most_rows, self.tile_side**2 if self.most_tiles > 1 else 0)

    def check(self) -> None:
        check_sizes(
            {
                "tile size": (self.tile, MAX_TILE),
                "least number of tiles": (self.least_tiles, MAX_TILES),
                "most number of tiles": (self.most_tiles, MAX_TILES),
                "least number of rows": (self.least_rows, MAX_ROWS),
                "most number of rows": (self.most_rows, MAX_ROWS),
            }
        )
        if self.tile % self.unit or self.tile_side**2 > MAX_ROWS:
            raise fault(f"tiles of {self.tile} pixels do not become whole rows of {self.unit}")
        least, most = TOLERANCES
        if type(self.tolerance) not in (int, float) or not least <= self.tolerance <= most:
            raise fault(f"its tolerance of pixels is not a number from {least} to {most}")

    def cut(self, width: int, height: int, is_coarse: bool) -> Cut:
        """Return how an image of this size is cut."""
        whole = self._whole(width, height)
        pixels = self._rounded(width) * self._rounded(height) * self.unit**2
        is_large = pixels > self.most_rows * self.unit**2 * self.tolerance
        if is_large and not is_coarse and self.most_tiles > 1:
            columns, lines = self._grid(width, height)
            if (lines, columns) != (1, 1):
                return Cut(lines=lines, columns=columns, whole=whole)
        return Cut(lines=0, columns=0, whole=whole)

    def _rounded(self, size: int) -> float:
        """Return how many rows a side has room for; half of one is the least."""
        return max(0.5, round(size / self.unit))

    def _whole(self, width: int, height: int) -> tuple[int, int]:
        lines, columns = (max(1, round(size / self.unit)) for size in (height, width))
        if lines * columns > self.most_rows:
            shrink = math.sqrt(height * width / (self.most_rows * self.unit**2))
            lines, columns = (
                max(1, math.floor(size / shrink / self.unit)) for size in (height, width)
            )
        elif lines * columns < self.least_rows:
            grow = math.sqrt(self.least_rows * self.unit**2 / (height * width))
            lines, columns = (math.ceil(size * grow / self.unit) for size in (height, width))
        # A strip would have more: it becomes shorter.
        lines = min(lines, self.most_rows)
        return lines, min(columns, self.most_rows // lines)

    def _grid(self, width: int, height: int) -> tuple[int, int]:
        """Return the columns and lines of tiles whose shape is next to the image's."""
        least, most = self.least_tiles, self.most_tiles
        grids = {
            (columns, lines)
            for columns in range(1, most + 1)
            for lines in range(1, most + 1)
            if least <= columns * lines <= most
        }
        best, distance = (1, 1), math.inf
        for columns, lines in sorted(grids, key=lambda grid: (grid[0] * grid[1], grid)):
            found = abs(width / height - columns / lines)
            is_as_far = found == distance
            has_pixels = width * height > 0.5 * self.tile**2 * columns * lines
            if found < distance or (is_as_far and has_pixels):
                best, distance = (columns, lines), found
        return best

    def parts(self, image: np.ndarray, is_coarse: bool) -> Iterator[np.ndarray]:
        """Yield the parts of an image u8 [H, W, 3]: tiles line by line, then the whole."""
        cut = self.cut(image.shape[1], image.shape[0], is_coarse)
        if cut.tiles:
            side = self.tile
            scaled = resized(image, cut.columns * side, cut.lines * side, BILINEAR)
            for line in range(cut.lines):
                for column in range(cut.columns):
                    yield scaled[line * side :, column * side :][:side, :side]
        if self.has_whole or not cut.tiles:
            lines, columns = cut.whole
            yield resized(image, columns * self.unit, lines * self.unit, BILINEAR)
