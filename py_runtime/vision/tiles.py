"""An image as tiles of the size that a tower takes: parts of it, and the whole, smaller."""

import math
from dataclasses import dataclass

import numpy as np

from py_runtime.vision.config import CHANNELS, TowerConfig
from py_runtime.vision.resample import resized

MOST_PIXELS = 4096  # of the longer side, before tiles are cut


@dataclass(frozen=True)
class Layout:
    """The tiles of an image: lines and columns of parts; none where the whole is the only tile."""

    lines: int
    columns: int
    scaled: tuple[int, int] | None  # width and height before it is cut
    fitted: tuple[int, int] | None  # and after each side became a number of tiles

    @property
    def tiles(self) -> int:
        return self.lines * self.columns + 1


def layout_of(config: TowerConfig, width: int, height: int, is_coarse: bool = False) -> Layout:
    """Return how an image of this size is cut; coarse ones are not."""
    how, side = config.preprocessing, config.side
    scaled = _scaled(width, height, how.edge)
    if is_coarse or not how.is_split:
        return Layout(0, 0, scaled, None)
    fitted = _fitted(*scaled, side)
    columns, lines = (size // side for size in fitted)
    if (columns, lines) == (1, 1):
        return Layout(0, 0, scaled, fitted)
    return Layout(lines, columns, scaled, fitted)


def _scaled(width: int, height: int, edge: int) -> tuple[int, int]:
    """Bring the longer side to `edge` pixels, the shorter to an even number of them."""
    share = width / height
    if width >= height:
        width, height = edge, int(edge / share)
        height += height % 2
    else:
        width, height = int(edge * share), edge
        width += width % 2
    width, height = max(width, 1), max(height, 1)
    share = width / height
    if width >= height and width > MOST_PIXELS:
        width, height = MOST_PIXELS, int(MOST_PIXELS / share)
    elif height > width and height > MOST_PIXELS:
        width, height = int(MOST_PIXELS * share), MOST_PIXELS
    return max(width, 1), max(height, 1)


def _fitted(width: int, height: int, side: int) -> tuple[int, int]:
    """Bring both sides to whole numbers of tiles."""
    share = width / height
    if width >= height:
        width = math.ceil(width / side) * side
        height = math.ceil(int(width / share) / side) * side
    else:
        height = math.ceil(height / side) * side
        width = math.ceil(int(height * share) / side) * side
    return max(width, side), max(height, side)


def tiles_of(config: TowerConfig, image: np.ndarray, is_coarse: bool = False) -> list[np.ndarray]:
    """Return what the tower takes for each tile of an image u8 [H, W, 3]: [1, N, 3 · P · P].

    The parts come line by line, the whole comes last.
    """
    side = config.side
    layout = layout_of(config, image.shape[1], image.shape[0], is_coarse)
    for size in (layout.scaled, layout.fitted):
        if size is not None:
            image = resized(image, *size)
    parts = [
        image[line * side : (line + 1) * side, column * side : (column + 1) * side]
        for line in range(layout.lines)
        for column in range(layout.columns)
    ]
    return [_patches(config, tile) for tile in (*parts, resized(image, side, side))]


def _patches(config: TowerConfig, tile: np.ndarray) -> np.ndarray:
    """Return the patches of a tile u8 [side, side, 3], as numbers that towers were trained with."""
    how, grid, patch = config.preprocessing, config.grid, config.patch
    scaled = tile.astype(np.float32) * np.float32(1 / 255)
    mean, std = (np.array(each, np.float32) for each in (how.mean, how.std))
    scaled = ((scaled - mean) / std)[: grid * patch, : grid * patch]
    # lines of patches, lines, patches, columns, channels → patches; channels, lines, columns
    cut = scaled.reshape(grid, patch, grid, patch, CHANNELS).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(cut.reshape(1, config.patches, config.patch_columns))
