"""Gemma 4, whose tower takes images in their own shape, up to so many rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from py_runtime.base.dtypes import F32, I64
from py_runtime.base.shapes import Dims, numel
from py_runtime.base.short_texts import short
from py_runtime.decoder.block_ops import BlockOps
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.limits import MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_WIDTH
from py_runtime.decoder.tensors import WeightKind
from py_runtime.program import Program, op_names
from py_runtime.program.writer import Ref
from py_runtime.vision.headers import fault as image_fault
from py_runtime.vision.picture import Picture
from py_runtime.vision.resample import BICUBIC, resized
from py_runtime.vision.sight import (
    CHANNELS,
    EPSILONS,
    Colours,
    Sight,
    check_epsilon,
    check_resample,
    check_sizes,
    fault,
    patches_of,
    renamed,
)

PILLOWS_BICUBIC = 3
MAX_PATCH, MAX_FACTOR, MAX_ROWS, MAX_POSITIONS = 1 << 8, 1 << 4, 1 << 11, 1 << 16
MAX_PIXELS = 1 << 32
DEFAULT_ROWS, COARSE_ROWS, FACTOR = 280, 70, 3
THETA = 100.0
START, ROW, END = "<|image>", "<|image|>", "<image|>"
PAD = "<pad>"  # whose embeddings of layers the rows of images take
AXES = 2  # across and down
FROM_MINUS_ONE = Colours()  # to 1, which the tower itself makes of what its processor gives
ACTIVATION = "gelu_pytorch_tanh"

PATCHES, POSITIONS = "patch_embedding.weight", "position_embedding.weight"
NORMS = BEFORE_MIXED, AFTER_MIXED, BEFORE_MLP, AFTER_MLP = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
QUERIES, KEYS, VALUES, MIXED = (f"self_attn.{part}_proj" for part in "qkvo")
QUERY_NORM, KEY_NORM = "self_attn.q_norm", "self_attn.k_norm"
GATE, UP, DOWN = (f"mlp.{part}_proj" for part in ("gate", "up", "down"))
MATRICES = (QUERIES, KEYS, VALUES, MIXED, GATE, UP, DOWN)
CENTRE, SPREAD = "standard.bias", "standard.scale"
PROJECTOR = "projector.weight"
INPUT, OUTPUT = ("input_min", "input_max"), ("output_min", "output_max")  # beside each matrix

GGUF_NAMES = {
    PATCHES: "v.patch_embd.weight",
    POSITIONS: "v.position_embd.weight",
    CENTRE: "v.std_bias",
    SPREAD: "v.std_scale",
    PROJECTOR: "mm.input_projection.weight",
}
GGUF_PARTS = {
    BEFORE_MIXED: "ln1",
    AFTER_MIXED: "attn_post_norm",
    BEFORE_MLP: "ln2",
    AFTER_MLP: "ffn_post_norm",
    QUERIES: "attn_q",
    KEYS: "attn_k",
    VALUES: "attn_v",
    MIXED: "attn_out",
    QUERY_NORM: "attn_q_norm",
    KEY_NORM: "attn_k_norm",
    GATE: "ffn_gate",
    UP: "ffn_up",
    DOWN: "ffn_down",
}
CHECKPOINT_NAMES = {
    PATCHES: "patch_embedder.input_proj.weight",
    POSITIONS: "patch_embedder.position_embedding_table",
    CENTRE: "vision_tower.std_bias",
    SPREAD: "vision_tower.std_scale",
    PROJECTOR: "embed_vision.embedding_projection.weight",
}
LAYERS = "encoder.layers"  # audio towers have theirs elsewhere


@dataclass(frozen=True, kw_only=True)
class Gemma4(Sight):
    """A tower of 2-D rotary positions; factor × factor patches are averaged."""

    patch: int
    width: int
    hidden: int
    layers: int
    heads: int
    head_dim: int
    positions: int  # rows of each of the two tables
    out: int
    factor: int = FACTOR
    most_rows: int = DEFAULT_ROWS
    theta: float = THETA
    eps: float = 1e-6
    is_clipped: bool = False  # what goes into matrices and comes out of them
    is_standard: bool = False  # rows are centred and scaled
    by_pixel: bool = False  # a patch's numbers, as checkpoints have them
    colours: Colours = FROM_MINUS_ONE

    written: ClassVar[str] = ROW
    row_tokens: ClassVar[Sequence[str]] = (ROW,)
    others: ClassVar[Sequence[str]] = (START, END, PAD)
    stand_in: ClassVar[str] = PAD
    ignored: ClassVar[Sequence[str]] = ("a.", "mm.a.")  # what hears

    @property
    def unit(self) -> int:
        """Return how many patches make up a row."""
        return self.factor**2

    @property
    def most_patches(self) -> int:
        return self.most_rows * self.unit

    @property
    def mixed(self) -> int:
        """Return the columns of all heads."""
        return self.heads * self.head_dim

    def check(self) -> None:
        check_sizes(
            {
                "patch size": (self.patch, MAX_PATCH),
                "width": (self.width, MAX_WIDTH),
                "hidden width": (self.hidden, MAX_HIDDEN),
                "number of layers": (self.layers, MAX_LAYERS),
                "number of heads": (self.heads, MAX_HEADS),
                "width of heads": (self.head_dim, MAX_WIDTH),
                "number of positions": (self.positions, MAX_POSITIONS),
                "pooling size": (self.factor, MAX_FACTOR),
                "number of rows": (self.most_rows, MAX_ROWS),
            }
        )
        if self.head_dim % (2 * AXES):
            raise fault(f"heads of {self.head_dim} columns do not turn by {AXES} axes")
        if self.positions < self.most_rows * self.factor:
            raise fault(f"its {self.positions} positions are fewer than a strip of patches has")
        if type(self.theta) not in (int, float) or not self.theta > 1:
            raise fault(f"its rope_theta is {short(self.theta)}")
        check_epsilon(self.eps)

    # Tensors -----------------------------------------------------------------------------------

    def completed(self, stored: Mapping[str, Dims]) -> "Gemma4":
        _, *of_a_table = stored.get("v.position_embd.weight", (0, 0))
        return replace(
            self,
            positions=numel(tuple(of_a_table)) // self.width,
            is_clipped="v.blk.0.attn_q.input_min" in stored,
            is_standard="v.std_bias" in stored,
        )

    def shapes(self) -> dict[str, Dims]:
        shapes: dict[str, Dims] = {
            PATCHES: (self.width, CHANNELS * self.patch**2),
            POSITIONS: (AXES, self.positions * self.width),
            PROJECTOR: (self.out, self.width),
        }
        if self.is_standard:
            shapes |= {CENTRE: (self.width,), SPREAD: (self.width,)}
        sizes: dict[str, Dims] = dict.fromkeys((QUERIES, KEYS, VALUES), (self.mixed, self.width))
        sizes |= {MIXED: (self.width, self.mixed), DOWN: (self.width, self.hidden)}
        sizes |= dict.fromkeys((GATE, UP), (self.hidden, self.width))
        for number in range(self.layers):
            path = f"layers.{number}."
            shapes |= {f"{path}{name}.weight": (self.width,) for name in NORMS}
            shapes |= {f"{path}{name}.weight": (self.head_dim,) for name in (QUERY_NORM, KEY_NORM)}
            for name, dims in sizes.items():
                shapes[f"{path}{name}.weight"] = dims
                if self.is_clipped:
                    shapes |= {f"{path}{name}.{bound}": (1,) for bound in (*INPUT, *OUTPUT)}
        return shapes

    def is_matrix(self, name: str) -> bool:
        return len(self.shapes()[name]) > 1 and name != POSITIONS

    def gguf_name(self, name: str) -> str:
        return GGUF_NAMES.get(name) or renamed(name, {}, "v.blk", GGUF_PARTS)

    def checkpoint_name(self, name: str) -> str:
        if name in CHECKPOINT_NAMES:
            return CHECKPOINT_NAMES[name]
        owner, _, ending = name.rpartition(".")
        is_matrix = ending == "weight" and owner.endswith(MATRICES)
        return renamed(f"{owner}.linear.weight" if is_matrix else name, {}, LAYERS, {})

    def write(self, kinds: Mapping[str, WeightKind], name: str) -> Program:
        return _Tower(self, kinds, name).write()

    # Images ------------------------------------------------------------------------------------

    def grid_of(self, width: int, height: int, is_coarse: bool) -> tuple[int, int]:
        """Return how many rows lie below and beside each other; (0, 0) for none."""
        most = min(self.most_rows, COARSE_ROWS) if is_coarse else self.most_rows
        unit = self.patch * self.factor
        scale = math.sqrt(most * unit**2 / (width * height))
        lines, columns = (math.floor(scale * size / unit) for size in (height, width))
        if not lines and columns:
            return 1, min(width // height, most)
        if not columns and lines:
            return min(height // width, most), 1
        return lines, columns

    def _grid(self, picture: Picture) -> tuple[int, int]:
        lines, columns = self.grid_of(picture.width, picture.height, picture.is_coarse)
        if not lines * columns:
            size = f"{picture.width} × {picture.height}"
            raise image_fault(picture.where, f"is {size} pixels: too long for its width")
        return lines, columns

    def rows_of(self, picture: Picture) -> int:
        lines, columns = self._grid(picture)
        return lines * columns

    def markup_of(self, picture: Picture, row: str) -> str:
        return f"{START}{row * self.rows_of(picture)}{END}"

    def calls_of(self, image: np.ndarray, is_coarse: bool) -> list[list[np.ndarray]]:
        lines, columns = self.grid_of(image.shape[1], image.shape[0], is_coarse)
        unit = self.patch * self.factor
        scaled = self.colours.of(resized(image, columns * unit, lines * unit, BICUBIC))
        patches = patches_of(scaled, self.patch, self.by_pixel)
        f = self.factor
        places = np.arange(len(patches)).reshape(lines, f, columns, f)
        order = places.transpose(0, 2, 1, 3).reshape(-1)  # those of a row lie together
        down, across = np.divmod(order, columns * f)
        at = np.stack([across, down], axis=1)
        tables = at + np.array([0, self.positions])  # one lies behind the other
        return [[patches[None, order], tables, *self._turning(at)]]

    def _turning(self, at: np.ndarray) -> list[np.ndarray]:
        """Return cosines and sines of columns and lines: f32 [N, head_dim] each."""
        quarter = self.head_dim // (2 * AXES)
        steps = np.arange(quarter, dtype=np.float32) / np.float32(quarter)
        frequencies = (1 / np.float32(self.theta) ** steps).astype(np.float32)
        angles = (at[:, :, None].astype(np.float32) * frequencies).reshape(len(at), -1)
        both = np.concatenate([angles, angles], axis=1)
        return [np.cos(both).astype(np.float32), np.sin(both).astype(np.float32)]


def read_json(values: Mapping[str, Any], processing: Mapping[str, Any], out: int) -> Gemma4:
    """Return the sizes that config.json and preprocessor_config.json give."""
    given = values["vision_config"]
    if given.get("hidden_activation", ACTIVATION) != ACTIVATION:
        raise fault(f"vision_config.hidden_activation is {short(given['hidden_activation'])}")
    heads = given.get("num_attention_heads", 12)
    if given.get("num_key_value_heads", heads) != heads or given.get("attention_bias"):
        raise fault("its heads share keys, or have biases")
    check_resample(processing, PILLOWS_BICUBIC)
    for key, usual in {"do_resize": True, "do_rescale": True, "do_normalize": False}.items():
        if processing.get(key, usual) is not usual:
            raise fault(f"{key} is {short(processing[key])}, which is not supported")
    patch, factor = given.get("patch_size", 16), given.get("pooling_kernel_size", FACTOR)
    own = processing.get("patch_size", patch), processing.get("pooling_kernel_size", factor)
    if own != (patch, factor):
        raise fault(f"images become patches of {short(own)}, but its tower has others")
    rope = given.get("rope_parameters") or {}
    return Gemma4(
        patch=patch,
        width=given.get("hidden_size", 768),
        hidden=given.get("intermediate_size", 3072),
        layers=given.get("num_hidden_layers", 16),
        heads=heads,
        head_dim=given.get("head_dim", 64),
        positions=given.get("position_embedding_size", 10_240),
        out=out,
        factor=factor,
        most_rows=processing.get("max_soft_tokens", DEFAULT_ROWS),
        theta=rope.get("rope_theta", THETA) if isinstance(rope, dict) else THETA,
        eps=given.get("rms_norm_eps", 1e-6),
        is_clipped=given.get("use_clipped_linears") is True,
        is_standard=given.get("standardize") is True,
        by_pixel=True,
    )


def read_gguf(keys: GgufKeys, out: int, colours: Colours) -> Gemma4:
    """Return the sizes that an mmproj file's keys give; its tensors give the others."""
    patch = keys.integer("vision.patch_size", 1, MAX_PATCH)
    factor = keys.integer("vision.projector.scale_factor", 1, MAX_FACTOR, default=FACTOR)
    unit = (patch * factor) ** 2
    most = keys.integer("vision.image_max_pixels", unit, MAX_PIXELS, default=DEFAULT_ROWS * unit)
    width = keys.integer("vision.embedding_length", 1, MAX_WIDTH)
    heads = keys.integer("vision.attention.head_count", 1, MAX_HEADS)
    return Gemma4(
        patch=patch,
        width=width,
        hidden=keys.integer("vision.feed_forward_length", 1, MAX_HIDDEN),
        layers=keys.integer("vision.block_count", 1, MAX_LAYERS),
        heads=heads,
        head_dim=width // heads,
        positions=1,
        out=out,
        factor=factor,
        most_rows=most // unit,
        eps=keys.number("vision.attention.layer_norm_epsilon", *EPSILONS),
    )


class _Tower(BlockOps):
    """patches: f32 [1, N, 3 · P · P], those of a row together → rows: f32 [1, N / unit, out].

    tables: i64 [N, 2], where the patch is in the tables of positions; cos, sin: f32 [N, head_dim],
    by columns and lines.
    """

    def __init__(self, sight: Gemma4, kinds: Mapping[str, WeightKind], name: str) -> None:
        super().__init__(kinds, sight.shapes(), sight.eps, name)
        self.sight = sight
        self.most = sight.most_patches
        self.rows = (1, self.most)
        self.wide = (*self.rows, sight.width)

    def write(self) -> Program:
        c, writer = self.sight, self.writer
        pixels = writer.input("patches", (*self.rows, CHANNELS * c.patch**2), F32, dynamic=(1,))
        tables = writer.input("tables", (self.most, AXES), I64, dynamic=(0,))
        turning = (self.most, c.head_dim)
        self.turning = [writer.input(name, turning, F32, dynamic=(0,)) for name in ("cos", "sin")]
        self.count, merged = writer.symint("count"), writer.symint("merged")
        writer.op("sym_size.int", pixels, 1, self.count)
        writer.op("floordiv", self.count, c.unit, merged)
        x = self._linear(PATCHES.removesuffix(".weight"), pixels, self.rows)
        x = self._add(x, self._positions(tables), self.wide)
        for number in range(c.layers):
            x = self._layer(f"layers.{number}", x)
        rows = (c.most_rows, c.width)
        x = self._viewed(x, (c.most_rows, c.unit, c.width), (merged,))
        x = self._computed("aten.mean.dim", rows, x, [1], False, None)
        x = self._computed(op_names.MUL, rows, x, c.width**0.5)
        if c.is_standard:
            x = self._computed("aten.sub.Tensor", rows, x, self._constant(CENTRE, (c.width,)), 1)
            x = self._computed(op_names.MUL, rows, x, self._constant(SPREAD, (c.width,)))
        x = self._computed(op_names.RMS_NORM, rows, x, None, self.eps)
        x = self._linear(PROJECTOR.removesuffix(".weight"), x, (c.most_rows,))
        writer.output(self._viewed(x, (1, c.most_rows, c.out), (1, merged)))
        return writer.program()

    def _positions(self, tables: Ref) -> Ref:
        """Look both places of each patch up, and add what the tables have."""
        c = self.sight
        both = self._viewed(
            self._constant(POSITIONS, self.shapes[POSITIONS]), (AXES * c.positions, c.width)
        )
        dims = (self.most, AXES, c.width)
        found = self._computed("aten.embedding.default", dims, both, tables, -1, False, False)
        sums = self._computed("aten.sum.dim_IntList", (self.most, c.width), found, [1], False, None)
        return self._viewed(sums, self.wide, (1, self.count))

    def _layer(self, path: str, x: Ref) -> Ref:
        mixed = self._attention(path, self._norm(f"{path}.{BEFORE_MIXED}", x, self.wide))
        x = self._add(x, self._norm(f"{path}.{AFTER_MIXED}", mixed, self.wide), self.wide)
        made = self._mlp(path, self._norm(f"{path}.{BEFORE_MLP}", x, self.wide))
        return self._add(x, self._norm(f"{path}.{AFTER_MLP}", made, self.wide), self.wide)

    def _norm(self, path: str, x: Ref, dims: Dims) -> Ref:
        weight = self._constant(f"{path}.weight", dims[-1:])
        return self._computed(op_names.RMS_NORM, dims, x, weight, self.eps)

    def _mlp(self, path: str, x: Ref) -> Ref:
        dims = (*self.rows, self.sight.hidden)
        gate = self._gelu(self._clipped(f"{path}.{GATE}", x), dims, is_exact=False)
        product = self._computed(op_names.MUL, dims, gate, self._clipped(f"{path}.{UP}", x))
        return self._clipped(f"{path}.{DOWN}", product)

    def _attention(self, path: str, x: Ref) -> Ref:
        """Write attention in which each patch sees all of the image."""
        c = self.sight
        split = (*self.rows, c.heads, c.head_dim)
        by_heads = (1, c.heads, self.most, c.head_dim)
        q, k, v = (
            self._viewed(self._clipped(f"{path}.{name}", x), split, (1, self.count))
            for name in (QUERIES, KEYS, VALUES)
        )
        q, k = (
            self._by_halves(self._norm(f"{path}.{name}", part, split))
            for name, part in ((QUERY_NORM, q), (KEY_NORM, k))
        )
        v = self._computed(op_names.RMS_NORM, split, v, None, self.eps)
        turned = [self.writer.tensor(split, F32) for _ in range(2)]
        self.writer.op("et_vk.apply_rotary_emb_hf.default", q, k, *self.turning, 0, turned)
        given = (self._swapped(part, by_heads) for part in (*turned, v))
        found = self._computed("et_vk.sdpa.default", by_heads, *given, None, 1.0)
        flat = self._viewed(self._swapped(found, split), (*self.rows, c.mixed), (1, self.count))
        return self._clipped(f"{path}.{MIXED}", flat)

    def _by_halves(self, x: Ref) -> Ref:
        """Let both axes' first halves come before their second ones, as rotary ops turn heads.

        Queries and keys change their columns alike, so that their products stay as they are.
        """
        c = self.sight
        quarters = (self.most, c.heads, AXES, 2, c.head_dim // (2 * AXES))
        apart = self._viewed(x, quarters, (self.count,))
        order = [0, 1, 3, 2, 4]
        dims = tuple(quarters[axis] for axis in order)
        swapped = self._computed("aten.permute_copy.default", dims, apart, order)
        return self._viewed(swapped, (*self.rows, c.heads, c.head_dim), (1, self.count))

    def _clipped(self, path: str, x: Ref) -> Ref:
        """Write a matrix's product; what goes in and comes out may have bounds."""
        rows, columns = self.shapes[f"{path}.weight"]
        x = self._bounded(path, INPUT, x, (*self.rows, columns))
        return self._bounded(path, OUTPUT, self._linear(path, x, self.rows), (*self.rows, rows))

    def _bounded(self, path: str, bounds: Sequence[str], x: Ref, dims: Dims) -> Ref:
        if not self.sight.is_clipped:
            return x
        least, most = (self._constant(f"{path}.{name}", (1,)) for name in bounds)
        x = self._computed("aten.maximum.default", dims, x, least)
        return self._computed("aten.minimum.default", dims, x, most)
