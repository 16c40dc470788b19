"""An image as tiles of the size that a tower takes: parts of it, and the whole, smaller."""

import math
from dataclasses import dataclass

import numpy as np

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


def layout_of(side: int, edge: int, width: int, height: int, is_split: bool) -> Layout:
    """Return how an image of this size is cut: into squares of `side`, the longer side `edge`."""
    scaled = _scaled(width, height, edge)
    if not is_split:
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


def tiles_of(side: int, edge: int, image: np.ndarray, is_split: bool) -> list[np.ndarray]:
    """Return the tiles u8 [side, side, 3] of an image u8 [H, W, 3].

    The parts come line by line, the whole comes last.
    """
    layout = layout_of(side, edge, image.shape[1], image.shape[0], is_split)
    for size in (layout.scaled, layout.fitted):
        if size is not None:
            image = resized(image, *size)
    parts = [
        image[line * side : (line + 1) * side, column * side : (column + 1) * side]
        for line in range(layout.lines)
        for column in range(layout.columns)
    ]
    return [*parts, resized(image, side, side)]
