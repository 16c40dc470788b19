"""LFM2-VL, whose tower (SigLIP 2) takes images in their own shape, and large ones in tiles."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import Dims
from py_runtime.base.short_texts import short
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.limits import MAX_HIDDEN
from py_runtime.decoder.tensors import WeightKind
from py_runtime.program import Program
from py_runtime.program.writer import Ref
from py_runtime.vision.lfm2_tiles import MAX_TILE, MAX_TILES, Cutting
from py_runtime.vision.picture import Picture
from py_runtime.vision.resample import BILINEAR, shares
from py_runtime.vision.sight import (
    Colours,
    check_resample,
    check_sizes,
    fault,
    patches_of,
    read_colours,
    with_bias,
)
from py_runtime.vision.siglip import (
    MAX_FACTOR,
    MAX_SIDE,
    PATCHES,
    POSITIONS,
    SiglipOps,
    SiglipSight,
    gguf_sizes,
    patches_in,
    read_sizes,
)

PILLOWS_BILINEAR = 2
MAX_PIXELS = 1 << 32
DEFAULT_POSITIONS, DEFAULT_SIDE, DEFAULT_FACTOR, DEFAULT_HIDDEN = 256, 256, 2, 2560
NORM, FIRST, SECOND = "projector_norm", "projector.first", "projector.second"
NORM_EPS = 1e-5  # whatever those of the tower have
ROW = "<image>"
START, END, WHOLE = "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>"
PART = "<|img_row_{line}_col_{column}|>"
# Of a preprocessor_config.json, and what they are here.
CUTTING = {
    "tile_size": "tile",
    "min_tiles": "least_tiles",
    "max_tiles": "most_tiles",
    "min_image_tokens": "least_rows",
    "max_image_tokens": "most_rows",
    "max_pixels_tolerance": "tolerance",
}


@dataclass(frozen=True, kw_only=True)
class Lfm2Vl(SiglipSight):
    """Patches of any shape go in; factor × factor neighbours come out as a row."""

    factor: int
    hidden: int = DEFAULT_HIDDEN  # columns within the projector
    has_norm: bool = True  # ahead of it
    by_pixel: bool = False  # a patch's numbers, as checkpoints have them
    cutting: Cutting = field(default_factory=lambda: Cutting(unit=1))

    projector_gguf: ClassVar = {NORM: "mm.input_norm", FIRST: "mm.1", SECOND: "mm.2"}
    projector_checkpoint: ClassVar = {
        NORM: "multi_modal_projector.layer_norm",
        FIRST: "multi_modal_projector.linear_1",
        SECOND: "multi_modal_projector.linear_2",
    }
    written: ClassVar[str] = ROW
    row_tokens = (ROW,)
    others = (START, END, WHOLE)

    @property
    def unit(self) -> int:
        """Return how many patches make up a row."""
        return self.factor**2

    @property
    def most_patches(self) -> int:
        return self.cutting.rows_at_once * self.unit

    @property
    def joined(self) -> int:
        return self.sizes.width * self.unit

    def check(self) -> None:
        check_sizes(
            {
                "downsample factor": (self.factor, MAX_FACTOR),
                "projector's width": (self.hidden, MAX_HIDDEN),
            }
        )
        super().check()
        self.cutting.check()
        if math.isqrt(self.sizes.positions) ** 2 != self.sizes.positions:
            raise fault(f"its {self.sizes.positions} positions are no square")

    def completed(self, stored: Mapping[str, Dims]) -> "Lfm2Vl":
        first, *_ = stored.get("mm.1.weight", (0,))
        return replace(self, hidden=first, has_norm="mm.input_norm.weight" in stored)

    def projector_shapes(self) -> dict[str, Dims]:
        return {
            **(with_bias(NORM, self.joined) if self.has_norm else {}),
            **with_bias(FIRST, self.hidden, self.joined),
            **with_bias(SECOND, self.out, self.hidden),
        }

    def write(self, kinds: Mapping[str, WeightKind], name: str) -> Program:
        return _Tower(self, kinds, name).write()

    # Images ------------------------------------------------------------------------------------

    def _parts(self, picture: Picture) -> Iterator[tuple[str, int]]:
        """Yield what stands before the rows of a part, and how many these are."""
        cut = self.cutting.cut(picture.width, picture.height, picture.is_coarse)
        for line in range(cut.lines):
            for column in range(cut.columns):
                name = PART.format(line=line + 1, column=column + 1)
                yield name, self.cutting.tile_side**2
        if self.cutting.has_whole or not cut.tiles:
            yield WHOLE if cut.tiles else "", cut.whole[0] * cut.whole[1]

    def rows_of(self, picture: Picture) -> int:
        return sum(rows for _, rows in self._parts(picture))

    def markup_of(self, picture: Picture, row: str) -> str:
        parts = "".join(name + row * rows for name, rows in self._parts(picture))
        return f"{START}{parts}{END}"

    def calls_of(self, image: np.ndarray, is_coarse: bool) -> list[list[np.ndarray]]:
        return [self._call(part) for part in self.cutting.parts(image, is_coarse)]

    def _call(self, part: np.ndarray) -> list[np.ndarray]:
        patches = patches_of(self.colours.of(part), self.sizes.patch, self.by_pixel)
        lines, columns = (size // self.sizes.patch for size in part.shape[:2])
        side = math.isqrt(self.sizes.positions)
        down, across = (shares(side, size, BILINEAR) for size in (lines, columns))
        places = np.einsum("li,cj->lcij", down, across).reshape(lines * columns, side**2)
        order = self._order(lines, columns)
        return [patches[None, order], places[order].astype(np.float32)]

    def _order(self, lines: int, columns: int) -> np.ndarray:
        """Return the patches, counted line by line, so that those of a row lie together: [N]."""
        f = self.factor
        places = np.arange(lines * columns).reshape(lines // f, f, columns // f, f)
        return places.transpose(0, 2, 1, 3).reshape(-1)


def read_json(values: Mapping[str, Any], processing: Mapping[str, Any], out: int) -> Lfm2Vl:
    """Return the sizes that config.json and preprocessor_config.json give."""
    given = values["vision_config"]
    if values.get("vision_feature_layer", -1) not in (-1, None):
        raise fault(f"vision_feature_layer is {short(values['vision_feature_layer'])}")
    if values.get("projector_hidden_act", "gelu") != "gelu" or not values.get(
        "projector_bias", True
    ):
        raise fault("its projector has no biases, or no gelu")
    check_resample(processing, PILLOWS_BILINEAR)
    sizes = read_sizes(given, given.get("num_patches", DEFAULT_POSITIONS), {})
    factor = values.get("downsample_factor", DEFAULT_FACTOR)
    own = processing.get("downsample_factor", factor), processing.get("encoder_patch_size", 16)
    if own != (factor, sizes.patch):
        raise fault(f"images become rows of {short(own)}, but its tower has others")
    numbers = {name: processing[key] for key, name in CUTTING.items() if key in processing}
    if processing.get("do_image_splitting", True) is not True:
        numbers["most_tiles"] = numbers["least_tiles"] = 1
    check_sizes({"patch size": (sizes.patch, MAX_SIDE), "downsample factor": (factor, MAX_FACTOR)})
    return Lfm2Vl(
        sizes=sizes,
        out=out,
        colours=read_colours(processing, Colours()),
        factor=factor,
        hidden=values.get("projector_hidden_size", DEFAULT_HIDDEN),
        has_norm=values.get("projector_use_layernorm", True) is True,
        by_pixel=True,
        cutting=Cutting(
            unit=sizes.patch * factor,
            has_whole=processing.get("use_thumbnail", True) is True,
            **numbers,
        ),
    )


def read_gguf(keys: GgufKeys, out: int, colours: Colours) -> Lfm2Vl:
    """Return the sizes that an mmproj file's keys give; its tensors give the projector's."""
    patch = keys.integer("vision.patch_size", 1, MAX_SIDE)
    side = keys.integer("vision.image_size", 1, MAX_SIDE, default=DEFAULT_SIDE)
    factor = keys.integer("vision.projector.scale_factor", 1, MAX_FACTOR, default=DEFAULT_FACTOR)
    usual, unit = Cutting(unit=patch * factor), (patch * factor) ** 2
    least, most = (
        keys.integer(f"vision.image_{name}_pixels", unit, MAX_PIXELS, default=rows * unit) // unit
        for name, rows in (("min", usual.least_rows), ("max", usual.most_rows))
    )
    return Lfm2Vl(
        sizes=gguf_sizes(keys, patches_in(side, patch)),
        out=out,
        colours=colours,
        factor=factor,
        cutting=replace(
            usual,
            tile=keys.integer("vision.preproc_image_size", 1, MAX_TILE, default=usual.tile),
            least_tiles=keys.integer(
                "vision.preproc_min_tiles", 1, MAX_TILES, default=usual.least_tiles
            ),
            most_tiles=keys.integer(
                "vision.preproc_max_tiles", 1, MAX_TILES, default=usual.most_tiles
            ),
            least_rows=least,
            most_rows=most,
        ),
    )


class _Tower(SiglipOps):
    """patches: f32 [1, N, 3 · P · P], those of a row together → rows: f32 [1, N / unit, out].

    places: f32 [N, positions], what each row of the table of positions gives to a patch.
    """

    def __init__(self, sight: Lfm2Vl, kinds: Mapping[str, WeightKind], name: str) -> None:
        super().__init__(sight, kinds, sight.most_patches, name)
        self.sight = sight

    def write(self) -> Program:
        c, writer = self.sight, self.writer
        self.count, self.merged = writer.symint("count"), writer.symint("merged")
        pixels = writer.input("patches", (*self.rows, c.sizes.patch_columns), F32, dynamic=(1,))
        writer.op("sym_size.int", pixels, 1, self.count)
        writer.op("floordiv", self.count, c.unit, self.merged)
        self.live = (1, self.count)
        x = self._layers(self._placed(self._linear(PATCHES, pixels, self.rows)))
        rows = (1, c.cutting.rows_at_once)
        x = self._viewed(x, (*rows, c.joined), (1, self.merged))
        if c.has_norm:
            x = self._layer_norm(NORM, x, (*rows, c.joined), eps=NORM_EPS)
        up = self._gelu(self._linear(FIRST, x, rows), (*rows, c.hidden), is_exact=True)
        writer.output(self._linear(SECOND, up, rows))
        return writer.program()

    def _placed(self, x: Ref) -> Ref:
        """Add what the places of patches give: the table stretches over the image."""
        _, most, width = self.wide
        positions = self.sizes.positions
        places = self.writer.input("places", (most, positions), F32, dynamic=(0,))
        table = self._constant(POSITIONS, self.shapes[POSITIONS])
        own = self._computed("aten.mm.default", (most, width), places, table)
        return self._add(x, self._viewed(own, self.wide, self.live), self.wide)
