"""Gemma 3, to which an image is a square of 256 tokens that see each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from py_runtime.base.shapes import Dims
from py_runtime.base.short_texts import short
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.tensors import WeightKind
from py_runtime.program import Program, op_names
from py_runtime.program.writer import Ref
from py_runtime.vision.picture import Picture
from py_runtime.vision.resample import BILINEAR, resized
from py_runtime.vision.sight import (
    Colours,
    check_resample,
    check_sizes,
    fault,
    patches_of,
    read_colours,
)
from py_runtime.vision.siglip import (
    MAX_SIDE,
    SiglipOps,
    SiglipSight,
    gguf_sizes,
    patches_in,
    read_sizes,
)

PILLOWS_BILINEAR = 2
DEFAULT_SIDE, DEFAULT_ROWS = 224, 256
GGUF_FACTOR = 4  # patches side by side that become a row; files do not say it
NORM, PROJECTOR = "projector_norm", "projector"
START, END = "<start_of_image>", "<end_of_image>"
# GGUF files leave out the token of a row, which has no embedding of its own.
ROWS = ("<image_soft_token>", "<unused98>")


@dataclass(frozen=True, kw_only=True)
class Gemma3(SiglipSight):
    """A square of `side` pixels goes in; neighbouring patches are averaged."""

    side: int
    factor: int  # so many patches in each direction make up a row

    projector_gguf: ClassVar = {NORM: "mm.soft_emb_norm", PROJECTOR: "mm.input_projection"}
    projector_checkpoint: ClassVar = {
        NORM: "multi_modal_projector.mm_soft_emb_norm",
        PROJECTOR: "multi_modal_projector.mm_input_projection_weight.",
    }
    written: ClassVar[str] = START
    row_tokens = ROWS
    others = (START, END)
    norms_from_one = (f"{NORM}.weight",)

    @property
    def grid(self) -> int:
        """Return how many patches lie side by side."""
        return self.side // self.sizes.patch

    @property
    def rows(self) -> int:
        return (self.grid // self.factor) ** 2

    @property
    def whole(self) -> int:
        return self.rows

    def check(self) -> None:
        check_sizes({"image size": (self.side, MAX_SIDE)})
        super().check()
        if not 1 <= self.factor <= self.grid or self.grid % self.factor:
            raise fault(f"{self.grid} patches side by side cannot be put together by {self.factor}")

    def projector_shapes(self) -> dict[str, Dims]:
        width = self.sizes.width
        return {f"{NORM}.weight": (width,), f"{PROJECTOR}.weight": (width, self.out)}

    def is_matrix(self, name: str) -> bool:
        return super().is_matrix(name) and not name.startswith(PROJECTOR)  # its columns are out

    def write(self, kinds: Mapping[str, WeightKind], name: str) -> Program:
        return _Tower(self, kinds, name).write()

    def rows_of(self, picture: Picture) -> int:
        return self.rows

    def markup_of(self, picture: Picture, row: str) -> str:
        return f"\n\n{START}{row * self.rows}{END}\n\n"

    def calls_of(self, image: np.ndarray, is_coarse: bool) -> list[list[np.ndarray]]:
        square = resized(image, self.side, self.side, BILINEAR)
        return [[patches_of(self.colours.of(square), self.sizes.patch)[None]]]


def read_json(values: Mapping[str, Any], processing: Mapping[str, Any], out: int) -> Gemma3:
    """Return the sizes that config.json and preprocessor_config.json give."""
    given = values["vision_config"]
    side = given.get("image_size", DEFAULT_SIDE)
    size = processing.get("size")
    if isinstance(size, dict) and {*size.values()} != {side}:
        raise fault(f"images have the size {short(size)}, but its tower takes {side}")
    if processing.get("do_pan_and_scan"):
        raise fault("do_pan_and_scan is true, which is not supported")
    check_resample(processing, PILLOWS_BILINEAR)
    positions = patches_in(side, given.get("patch_size", 16))
    rows = values.get("mm_tokens_per_image", DEFAULT_ROWS)
    is_count = type(rows) is int and rows > 0
    return Gemma3(
        sizes=read_sizes(given, positions, {}),
        out=out,
        colours=read_colours(processing, Colours()),
        side=side,
        factor=int((positions // rows) ** 0.5) if is_count else 0,
    )


def read_gguf(keys: GgufKeys, out: int, colours: Colours) -> Gemma3:
    """Return the sizes that an mmproj file's keys give."""
    side = keys.integer("vision.image_size", 1, MAX_SIDE)
    patch = keys.integer("vision.patch_size", 1, MAX_SIDE)
    return Gemma3(
        sizes=gguf_sizes(keys, patches_in(side, patch)),
        out=out,
        colours=colours,
        side=side,
        factor=keys.integer("vision.projector.scale_factor", 1, 1 << 4, default=GGUF_FACTOR),
    )


class _Tower(SiglipOps):
    """patches: f32 [1, N, 3 · P · P] → rows: f32 [1, N / factor², out]."""

    def __init__(self, sight: Gemma3, kinds: Mapping[str, WeightKind], name: str) -> None:
        super().__init__(sight, kinds, sight.sizes.positions, name)
        self.sight = sight

    def write(self) -> Program:
        c, width = self.sight, self.sizes.width
        x = self._averaged(self._layers(self._patches()))
        weight = self._constant(f"{NORM}.weight", (width,))
        x = self._computed(op_names.RMS_NORM, (c.rows, width), x, weight, self.eps)
        matrix = self._constant(f"{PROJECTOR}.weight", (width, c.out))
        x = self._computed("aten.mm.default", (c.rows, c.out), x, matrix)
        self.writer.output(self._viewed(x, (1, c.rows, c.out)))
        return self.writer.program()

    def _averaged(self, x: Ref) -> Ref:
        """Take the means of factor × factor patches: of a column, then beside each other."""
        c, width = self.sight, self.sizes.width
        few = c.grid // c.factor
        x = self._viewed(x, (few, c.factor, c.grid * width))
        x = self._computed("aten.mean.dim", (few, c.grid * width), x, [1], False, None)
        x = self._viewed(x, (few * few, c.factor, width))
        return self._computed("aten.mean.dim", (few * few, width), x, [1], False, None)
