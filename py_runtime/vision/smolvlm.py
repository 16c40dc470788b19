"""SmolVLM, whose images are cut into tiles: parts of one, and the whole, smaller."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from py_runtime.base.shapes import Dims
from py_runtime.base.short_texts import short
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.tensors import WeightKind
from py_runtime.program import Program
from py_runtime.program.writer import Ref
from py_runtime.vision.picture import Picture
from py_runtime.vision.sight import (
    Colours,
    check_resample,
    check_sizes,
    fault,
    patches_of,
    read_colours,
)
from py_runtime.vision.siglip import (
    MAX_EDGE,
    MAX_FACTOR,
    MAX_SIDE,
    SiglipOps,
    SiglipSight,
    gguf_sizes,
    patches_in,
    read_sizes,
)
from py_runtime.vision.tiles import Layout, layout_of, tiles_of

LANCZOS = 1  # as Pillow numbers ways to scale
EDGES = 4  # an image is scaled to so many tiles, where nothing is said
DEFAULTS = {
    "hidden_size": 1152,
    "num_attention_heads": 16,
    "image_size": 224,
    "patch_size": 32,
}
DEFAULT_FACTOR = 2
PROJECTOR = "projector"
ROW, EDGE, WHOLE = "<image>", "<fake_token_around_image>", "<global-img>"
PART = "<row_{line}_col_{column}>"


@dataclass(frozen=True, kw_only=True)
class SmolVlm(SiglipSight):
    """A tile of `side` pixels goes in; factor × factor patches come out as a row."""

    side: int
    factor: int
    edge: int  # the longer side is scaled to it before tiles are cut
    is_split: bool = True  # else the whole image is one tile

    projector_gguf: ClassVar = {PROJECTOR: "mm.model.fc"}
    projector_checkpoint: ClassVar = {PROJECTOR: "modality_projection.proj"}
    written: ClassVar[str] = ROW
    row_tokens = (ROW,)
    others = (EDGE, WHOLE)

    @property
    def grid(self) -> int:
        """Return how many patches lie side by side."""
        return self.side // self.sizes.patch

    @property
    def rows(self) -> int:
        """Return how many rows a tile becomes."""
        return self.sizes.positions // self.factor**2

    def check(self) -> None:
        check_sizes(
            {
                "image size": (self.side, MAX_SIDE),
                "scale factor": (self.factor, MAX_FACTOR),
                "longest edge": (self.edge, MAX_EDGE),
            }
        )
        super().check()
        if self.grid % self.factor:
            raise fault(f"{self.grid} patches side by side cannot be put together by {self.factor}")

    def projector_shapes(self) -> dict[str, Dims]:
        return {f"{PROJECTOR}.weight": (self.out, self.sizes.width * self.factor**2)}

    def write(self, kinds: Mapping[str, WeightKind], name: str) -> Program:
        return _Tower(self, kinds, name).write()

    def _layout(self, picture: Picture) -> Layout:
        size = (picture.width, picture.height)
        return layout_of(self.side, self.edge, *size, self.is_split and not picture.is_coarse)

    def rows_of(self, picture: Picture) -> int:
        return self._layout(picture).tiles * self.rows

    def markup_of(self, picture: Picture, row: str) -> str:
        layout, rows = self._layout(picture), row * self.rows
        lines = [
            "".join(
                f"{EDGE}{PART.format(line=line + 1, column=column + 1)}{rows}"
                for column in range(layout.columns)
            )
            for line in range(layout.lines)
        ]
        parts = "".join(f"{line}\n" for line in lines)
        between = "\n" if lines else ""
        return f"{parts}{between}{EDGE}{WHOLE}{rows}{EDGE}"

    def calls_of(self, image: np.ndarray, is_coarse: bool) -> list[list[np.ndarray]]:
        tiles = tiles_of(self.side, self.edge, image, self.is_split and not is_coarse)
        return [[patches_of(self.colours.of(tile), self.sizes.patch)[None]] for tile in tiles]


def read_json(values: Mapping[str, Any], processing: Mapping[str, Any], out: int) -> SmolVlm:
    """Return the sizes that config.json and preprocessor_config.json give."""
    given = {**DEFAULTS, **values["vision_config"]}
    side = given["image_size"]
    sizes = read_sizes(given, patches_in(side, given["patch_size"]), DEFAULTS)
    size, tile = processing.get("size"), processing.get("max_image_size")
    edge = size.get("longest_edge") if isinstance(size, dict) else EDGES * side
    own = tile.get("longest_edge") if isinstance(tile, dict) else side
    if own != side:
        raise fault(f"its tiles have {short(own)} pixels, but its tower takes {side}")
    check_resample(processing, LANCZOS)
    return SmolVlm(
        sizes=sizes,
        out=out,
        colours=read_colours(processing, Colours()),
        side=side,
        factor=values.get("scale_factor", DEFAULT_FACTOR),
        edge=edge,  # type: ignore[arg-type]  # checked with the others
        is_split=processing.get("do_image_splitting", True) is True,
    )


def read_gguf(keys: GgufKeys, out: int, colours: Colours) -> SmolVlm:
    """Return the sizes that an mmproj file's keys give."""
    side = keys.integer("vision.image_size", 1, MAX_SIDE)
    patch = keys.integer("vision.patch_size", 1, MAX_SIDE)
    return SmolVlm(
        sizes=gguf_sizes(keys, patches_in(side, patch)),
        out=out,
        colours=colours,
        side=side,
        factor=keys.integer("vision.projector.scale_factor", 1, MAX_FACTOR),
        edge=keys.integer("vision.preproc_image_size", 1, MAX_EDGE, default=EDGES * side),
    )


class _Tower(SiglipOps):
    """patches: f32 [1, N, 3 · P · P] → rows: f32 [1, N / factor², out]."""

    def __init__(self, sight: SmolVlm, kinds: Mapping[str, WeightKind], name: str) -> None:
        super().__init__(sight, kinds, sight.sizes.positions, name)
        self.sight = sight

    def write(self) -> Program:
        x = self._layers(self._patches())
        self.writer.output(self._linear(PROJECTOR, self._shuffled(x), (1, self.sight.rows)))
        return self.writer.program()

    def _shuffled(self, x: Ref) -> Ref:
        """Put factor × factor neighbours into one row, line by line, then beside each other."""
        c = self.sight
        grid, few, joined = c.grid, c.grid // c.factor, c.sizes.width * c.factor
        x = self._viewed(x, (1, grid, few, joined))  # neighbours of a line
        x = self._swapped(x, (1, few, grid, joined))
        x = self._viewed(x, (1, few, few, joined * c.factor))  # and of a column
        x = self._swapped(x, (1, few, few, joined * c.factor))
        return self._viewed(x, (1, c.rows, joined * c.factor))
