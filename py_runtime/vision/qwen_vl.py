"""Qwen2.5-VL and Qwen3-VL: sizes and tensors of their towers, and images of any size."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from py_runtime.base.shapes import Dims
from py_runtime.decoder.limits import MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_WIDTH
from py_runtime.decoder.rotary import SEVERAL
from py_runtime.vision.headers import fault as image_fault
from py_runtime.vision.picture import Picture
from py_runtime.vision.qwen_names import (
    CHECKPOINT_NAMES,
    DEEP,
    DOWN,
    FIRST_NORM,
    GATE,
    GGUF_LAYERS,
    GGUF_NAMES,
    GGUF_PARTS,
    LAST_NORM,
    MERGED,
    MIXED,
    PATCHES,
    POSITIONS,
    PROJECTED,
    QKV,
    SECOND_FRAME,
    SECOND_NORM,
    TURNED,
    UP,
    checkpoint_parts,
)
from py_runtime.vision.resample import BICUBIC, resized
from py_runtime.vision.sight import (
    CHANNELS,
    Colours,
    Sight,
    check_epsilon,
    check_sizes,
    fault,
    patches_of,
    renamed,
    with_bias,
)

CLIP = Colours((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
EPS, THETA = 1e-6, 10_000.0
MAX_PATCH, MAX_FACTOR, MAX_WINDOW, MAX_POSITIONS = 1 << 7, 1 << 3, 1 << 12, 1 << 16
MAX_PIXELS = 1 << 32
FRAMES = 2  # of a video, which a patch is made of; a picture is two that are the same
# Of an image, whatever its processor allows: a chat has room for three of them.
MOST_ROWS, COARSE_ROWS = 1024, 256
FEW_WINDOWS = 32
SMALLER = 0.9  # times the pixels, as often as it takes
LONGEST = 200  # times as long as wide
ROW = "<|image_pad|>"
CORNERS = 4  # of a square of positions


@dataclass(frozen=True, kw_only=True)
class QwenImages(Sight):
    """A tower of 2-D rotary positions: of Qwen2.5-VL with windows, of Qwen3-VL with deep rows."""

    patch: int
    width: int
    hidden: int
    layers: int
    heads: int
    out: int
    factor: int  # so many patches in each direction make up a row
    least: int  # pixels
    most: int
    window: int = 0  # pixels of its side; 0: all patches see each other
    unbound: tuple[int, ...] = ()  # layers in which all do, where there are windows
    positions: int = 0  # rows of their table, which are those of a square; 0: there is none
    deep: tuple[int, ...] = ()  # layers behind which rows of their own are taken
    in_one: bool = True  # both frames' weights are one matrix
    eps: float = EPS
    colours: Colours = CLIP

    has_places: ClassVar[bool] = True
    written: ClassVar[str] = ROW
    row_tokens: ClassVar[Sequence[str]] = (ROW,)

    @property
    def is_new(self) -> bool:
        """Tell Qwen3-VL, which has a table of positions and no windows, from Qwen2.5-VL."""
        return self.positions > 0

    @property
    def deep_layers(self) -> int:
        return len(self.deep)

    @property
    def head_dim(self) -> int:
        return self.width // self.heads

    @property
    def unit(self) -> int:
        """Return how many patches make up a row."""
        return self.factor**2

    @property
    def window_side(self) -> int:
        """Return how many rows lie side by side in a window."""
        return self.window // self.factor // self.patch

    @property
    def in_window(self) -> int:
        """Return how many patches there is room for in a window."""
        return self.window_side**2 * self.unit

    @cached_property
    def most_patches(self) -> int:
        """Return the most patches of a call, with those that only fill windows up."""
        rows = min(MOST_ROWS, max(self.most // (self.patch * self.factor) ** 2, 1))
        if not self.window:
            return rows * self.unit
        side = self.window_side
        # A line of rows fills as many windows as it is long; such images are made smaller.
        most = max(3 * rows // (2 * side**2), min(-(-rows // side), FEW_WINDOWS))
        return (most + 1) * self.in_window

    @property
    def pixel_columns(self) -> int:
        return CHANNELS * self.patch**2 * (FRAMES if self.in_one else 1)

    def check(self) -> None:
        check_sizes(
            {
                "patch size": (self.patch, MAX_PATCH),
                "width": (self.width, MAX_WIDTH),
                "hidden width": (self.hidden, MAX_HIDDEN),
                "number of layers": (self.layers, MAX_LAYERS),
                "number of heads": (self.heads, MAX_HEADS),
                "merge size": (self.factor, MAX_FACTOR),
                "least number of pixels": (self.least, MAX_PIXELS),
                "most number of pixels": (self.most, MAX_PIXELS),
                "window": (self.window or 1, MAX_WINDOW),
                "number of positions": (self.positions or 1, MAX_POSITIONS),
            }
        )
        if self.width % self.heads or self.head_dim % 4:
            raise fault(f"{self.heads} heads do not share {self.width} columns by fours")
        if self.window and not self.window_side >= 1:
            raise fault(f"its window of {self.window} pixels has no room for a row")
        if math.isqrt(self.positions) ** 2 != self.positions:
            raise fault(f"its {self.positions} positions are no square")
        if not all(type(n) is int and 0 <= n < self.layers for n in (*self.unbound, *self.deep)):
            raise fault("it names layers that it does not have")
        if list(self.deep) != sorted({*self.deep}):
            raise fault("its layers with deep rows are not in their order")
        check_epsilon(self.eps)
        self.colours.check()

    # Tensors -----------------------------------------------------------------------------------

    def shapes(self) -> dict[str, Dims]:
        joined = self.width * self.unit
        shapes: dict[str, Dims] = {f"{PATCHES}.weight": (self.width, self.pixel_columns)}
        if not self.in_one:
            shapes[SECOND_FRAME] = (self.width, self.pixel_columns)
        if self.is_new:
            shapes[f"{PATCHES}.bias"] = (self.width,)
            shapes[POSITIONS] = (self.positions, self.width)
        for number in range(self.layers):
            path = f"layers.{number}."
            shapes |= self._norm(path + FIRST_NORM) | self._norm(path + SECOND_NORM)
            for name in (*QKV, MIXED):
                shapes |= with_bias(path + name, self.width, self.width)
            for name in (UP,) if self.is_new else (GATE, UP):
                shapes |= with_bias(path + name, self.hidden, self.width)
            shapes |= with_bias(path + DOWN, self.width, self.hidden)
        shapes |= self._norm(LAST_NORM)
        shapes |= self._merger((MERGED, PROJECTED))
        for number in self.deep:
            norm, *others = (f"{DEEP}.{number}.{part}" for part in ("norm", "fc1", "fc2"))
            shapes |= with_bias(norm, joined) | self._merger(others)
        return shapes

    def _norm(self, path: str) -> dict[str, Dims]:
        found = with_bias(path, self.width)
        return found if self.is_new else {f"{path}.weight": (self.width,)}

    def _merger(self, paths: Sequence[str]) -> dict[str, Dims]:
        joined = self.width * self.unit
        first, second = paths
        return with_bias(first, joined, joined) | with_bias(second, self.out, joined)

    def is_matrix(self, name: str) -> bool:
        return len(self.shapes()[name]) > 1 and name != POSITIONS

    def gguf_name(self, name: str) -> str:
        if name == SECOND_FRAME:
            return "v.patch_embd.weight.1"
        if name.startswith(DEEP):
            return f"v.{name}"
        return renamed(name, GGUF_NAMES, GGUF_LAYERS, GGUF_PARTS)

    def checkpoint_name(self, name: str) -> str:
        whole, parts = CHECKPOINT_NAMES[self.is_new], checkpoint_parts(self.is_new)
        if name.startswith(DEEP):
            _, number, part = name.split(".", 2)
            place = self.deep.index(int(number))
            return f"deepstack_merger_list.{place}.{part.replace('fc', 'linear_fc')}"
        return renamed(name, whole, "blocks", parts)

    def fused(self) -> Iterator[tuple[str, Sequence[str]]]:
        for number in range(self.layers):
            path = f"layers.{number}."
            yield f"{path}{TURNED}", [path + name for name in QKV]

    # Images ------------------------------------------------------------------------------------

    def grid_of(self, width: int, height: int, is_coarse: bool) -> tuple[int, int]:
        """Return how many rows lie below and beside each other, for an image of this size."""
        unit = self.patch * self.factor
        most = float(min(self.most, (COARSE_ROWS if is_coarse else MOST_ROWS) * unit**2))
        while True:
            grid = self._scaled(width, height, unit, most)
            if self._patches_of(*grid) <= self.most_patches:
                return grid
            most *= SMALLER

    def _patches_of(self, lines: int, columns: int) -> int:
        """Return how many patches a call has for so many rows, with those that fill windows up."""
        if not self.window:
            return lines * columns * self.unit
        side = self.window_side
        return -(-lines // side) * -(-columns // side) * self.in_window

    def _scaled(self, width: int, height: int, unit: int, most: float) -> tuple[int, int]:
        least = min(self.least, most)
        lines, columns = (round(size / unit) * unit for size in (height, width))
        if lines * columns > most:
            shrink = math.sqrt(height * width / most)
            lines, columns = (
                max(unit, math.floor(size / shrink / unit) * unit) for size in (height, width)
            )
        elif lines * columns < least:
            grow = math.sqrt(least / (height * width))
            lines, columns = (math.ceil(size * grow / unit) * unit for size in (height, width))
        return lines // unit, columns // unit

    def _grid(self, picture: Picture) -> tuple[int, int]:
        width, height = picture.width, picture.height
        if max(width, height) > LONGEST * min(width, height):
            raise image_fault(
                picture.where, f"is {width} × {height} pixels: over {LONGEST} times as long as wide"
            )
        return self.grid_of(width, height, picture.is_coarse)

    def rows_of(self, picture: Picture) -> int:
        lines, columns = self._grid(picture)
        return lines * columns

    def markup_of(self, picture: Picture, row: str) -> str:
        return row * self.rows_of(picture)

    def places_of(self, picture: Picture) -> np.ndarray:
        lines, columns = self._grid(picture)
        places = np.zeros((lines, columns, SEVERAL), np.int64)
        places[..., 1], places[..., 2] = np.arange(lines)[:, None], np.arange(columns)
        return places.reshape(-1, SEVERAL)

    def calls_of(self, image: np.ndarray, is_coarse: bool) -> list[list[np.ndarray]]:
        lines, columns = self.grid_of(image.shape[1], image.shape[0], is_coarse)
        unit = self.patch * self.factor
        scaled = self.colours.of(resized(image, columns * unit, lines * unit, BICUBIC))
        patches = patches_of(scaled, self.patch)
        if self.in_one:  # both frames beside each other, in each channel
            by_channel = patches.reshape(len(patches), CHANNELS, 1, -1)
            patches = by_channel.repeat(FRAMES, axis=2).reshape(len(patches), -1)
        order = self.order_of(lines, columns)
        is_there = order >= 0
        # Those that fill a window up are the first patch again, which nobody sees.
        known = np.where(is_there, order, 0)
        at = np.stack(np.divmod(known, columns * self.factor), axis=1)  # line and column
        given = [patches[None, known], *self._turning(at)]
        if self.window:
            given += [is_there[None, None, None], is_there.reshape(-1, 1, 1, self.in_window)]
        if self.is_new:
            given += self._corners(at, lines * self.factor, columns * self.factor)
        return [[np.ascontiguousarray(each) for each in given]]

    def order_of(self, lines: int, columns: int) -> np.ndarray:
        """Return the patches, counted line by line, in the order of the tower: [N].

        Patches of a row lie together; so do rows of a window, which -1 fill up.
        """
        f, side = self.factor, self.window_side if self.window else 1
        places = np.arange(lines * columns * self.unit).reshape(lines, f, columns, f)
        rows = places.transpose(0, 2, 1, 3).reshape(lines, columns, self.unit)
        if not self.window:
            return rows.reshape(-1)
        filling = ((0, -lines % side), (0, -columns % side), (0, 0))
        filled = np.pad(rows, filling, constant_values=-1)
        high, wide = (size // side for size in filled.shape[:2])
        windows = filled.reshape(high, side, wide, side, self.unit).transpose(0, 2, 1, 3, 4)
        return windows.reshape(-1)

    def _turning(self, at: np.ndarray) -> list[np.ndarray]:
        """Return cosines and sines of lines and columns: f32 [N, head_dim] each."""
        quarter = self.head_dim // 4
        steps = np.arange(quarter, dtype=np.float32) / np.float32(quarter)
        frequencies = (1 / np.float32(THETA) ** steps).astype(np.float32)
        angles = (at[:, :, None].astype(np.float32) * frequencies).reshape(len(at), 2 * quarter)
        both = np.concatenate([angles, angles], axis=1)
        return [np.cos(both).astype(np.float32), np.sin(both).astype(np.float32)]

    def _corners(self, at: np.ndarray, lines: int, columns: int) -> list[np.ndarray]:
        """Return four rows of the table of positions for each patch, and the weight of each.

        That is i64 [N, 4] and f32 [N, 1, 4]: the table stretches over the whole image.
        """
        side = math.isqrt(self.positions)
        by_axis = []
        for places, size in zip(at.T, (lines, columns), strict=True):
            stretched = places.astype(np.float32) * np.float32(side - 1)
            stretched /= np.float32(max(size - 1, 1))
            first = np.floor(stretched).astype(np.int64)
            share = (stretched - first).astype(np.float32)
            both = np.minimum(np.stack([first, first + 1], axis=1), side - 1)
            by_axis.append((both, np.stack([1 - share, share], axis=1)))
        (down, by_line), (across, by_column) = by_axis
        rows = down[:, :, None] * side + across[:, None, :]
        shares = by_line[:, :, None] * by_column[:, None, :]
        return [rows.reshape(-1, CORNERS), shares.reshape(-1, 1, CORNERS).astype(np.float32)]

    def rows_from(
        self, results: list[list[np.ndarray]], image: np.ndarray, is_coarse: bool
    ) -> np.ndarray:
        grid = self.grid_of(image.shape[1], image.shape[0], is_coarse)
        order = self.order_of(*grid)[:: self.unit]
        rows = np.concatenate([part[0] for part in results[0]], axis=1)
        # The first patch of each row tells where it is; those that fill windows up are left out.
        found = rows[order >= 0]
        at = order[order >= 0]
        lines, columns = np.divmod(at, grid[1] * self.factor)
        places = lines // self.factor * grid[1] + columns // self.factor
        sorted_rows = np.empty_like(found)
        sorted_rows[places] = found
        return sorted_rows
