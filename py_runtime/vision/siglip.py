"""SigLIP, the tower of SmolVLM, Gemma 3 and LFM2-VL: its sizes, its tensors, and its layers."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import Dims
from py_runtime.base.short_texts import short
from py_runtime.decoder.block_ops import BlockOps
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.limits import MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_WIDTH
from py_runtime.decoder.tensors import WeightKind
from py_runtime.program.writer import Ref
from py_runtime.vision.sight import (
    CHANNELS,
    EPSILONS,
    Colours,
    Sight,
    check_epsilon,
    check_sizes,
    fault,
    renamed,
    with_bias,
)

GELU, GELU_TANH = "gelu", "gelu_tanh"
ACTIVATIONS = {"gelu": GELU, "gelu_pytorch_tanh": GELU_TANH}
MAX_SIDE, MAX_FACTOR, MAX_EDGE = 1 << 11, 1 << 4, 1 << 13
MAX_PATCHES = 1 << 13  # of a tile
DEFAULT_EPS = 1e-6
# What transformers takes where a config.json is silent.
DEFAULTS = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "patch_size": 16,
}
PATCHES, POSITIONS = "patch_embedding", "position_embedding.weight"
FIRST_NORM, SECOND_NORM, LAST_NORM = "input_layernorm", "pre_mlp_layernorm", "norm"
QUERIES, KEYS, VALUES, MIXED = (f"self_attn.{part}_proj" for part in "qkvo")
UP, DOWN = "mlp.up_proj", "mlp.down_proj"

# What mmproj files and checkpoints call them; layers have theirs behind a number.
GGUF_NAMES = {
    PATCHES: "v.patch_embd",
    POSITIONS.removesuffix(".weight"): "v.position_embd",
    LAST_NORM: "v.post_ln",
}
GGUF_LAYERS, GGUF_PARTS = (
    "v.blk",
    {
        FIRST_NORM: "ln1",
        QUERIES: "attn_q",
        KEYS: "attn_k",
        VALUES: "attn_v",
        MIXED: "attn_out",
        SECOND_NORM: "ln2",
        UP: "ffn_up",
        DOWN: "ffn_down",
    },
)
CHECKPOINT_NAMES = {
    PATCHES: "embeddings.patch_embedding",
    POSITIONS.removesuffix(".weight"): "embeddings.position_embedding",
    LAST_NORM: "post_layernorm",
}
CHECKPOINT_LAYERS, CHECKPOINT_PARTS = (
    "encoder.layers",
    {
        FIRST_NORM: "layer_norm1",
        MIXED: "self_attn.out_proj",
        SECOND_NORM: "layer_norm2",
        UP: "mlp.fc1",
        DOWN: "mlp.fc2",
    },
)

PLAIN = Colours()


@dataclass(frozen=True, kw_only=True)
class SiglipSizes:
    """The sizes of a tower's layers."""

    patch: int
    width: int
    hidden: int
    layers: int
    heads: int
    positions: int  # rows of their table, which are those of a square
    activation: str = GELU_TANH
    eps: float = DEFAULT_EPS

    @property
    def head_dim(self) -> int:
        return self.width // self.heads

    @property
    def patch_columns(self) -> int:
        return CHANNELS * self.patch**2

    def check(self) -> None:
        """Check each by itself; ModelError names the first that no tower has."""
        check_sizes(
            {
                "patch size": (self.patch, MAX_SIDE),
                "width": (self.width, MAX_WIDTH),
                "hidden width": (self.hidden, MAX_HIDDEN),
                "number of layers": (self.layers, MAX_LAYERS),
                "number of heads": (self.heads, MAX_HEADS),
                "number of patches": (self.positions, MAX_PATCHES),
            }
        )
        if self.width % self.heads:
            raise fault(f"{self.heads} heads do not share {self.width} columns")
        check_epsilon(self.eps)


@dataclass(frozen=True, kw_only=True)
class SiglipSight(Sight):
    """A family with such a tower, and a projector behind it."""

    sizes: SiglipSizes
    out: int
    colours: Colours = PLAIN

    # The projector's names in mmproj files and in checkpoints; a dot ends one without an ending.
    projector_gguf: ClassVar[Mapping[str, str]]
    projector_checkpoint: ClassVar[Mapping[str, str]]

    def check(self) -> None:
        self.sizes.check()
        self.colours.check()

    def shapes(self) -> dict[str, Dims]:
        c = self.sizes
        shapes: dict[str, Dims] = {
            **with_bias(PATCHES, c.width, c.patch_columns),
            POSITIONS: (c.positions, c.width),
            **with_bias(LAST_NORM, c.width),
            **self.projector_shapes(),
        }
        for number in range(c.layers):
            path = f"layers.{number}."
            for norm in (FIRST_NORM, SECOND_NORM):
                shapes |= with_bias(path + norm, c.width)
            for name in (QUERIES, KEYS, VALUES, MIXED):
                shapes |= with_bias(path + name, c.width, c.width)
            shapes |= with_bias(path + UP, c.hidden, c.width)
            shapes |= with_bias(path + DOWN, c.width, c.hidden)
        return shapes

    @abstractmethod
    def projector_shapes(self) -> dict[str, Dims]:
        """Return the shapes of what turns the tower's rows into the decoder's."""

    def is_matrix(self, name: str) -> bool:
        return len(self.shapes()[name]) > 1 and name != POSITIONS

    def gguf_name(self, name: str) -> str:
        return renamed(name, {**GGUF_NAMES, **self.projector_gguf}, GGUF_LAYERS, GGUF_PARTS)

    def checkpoint_name(self, name: str) -> str:
        whole = {**CHECKPOINT_NAMES, **self.projector_checkpoint}
        return renamed(name, whole, CHECKPOINT_LAYERS, CHECKPOINT_PARTS)


def read_sizes(given: Mapping[str, Any], positions: int, usual: Mapping[str, int]) -> SiglipSizes:
    """Return the sizes that the vision_config of a config.json gives."""
    sizes = {key: given.get(key, default) for key, default in {**DEFAULTS, **usual}.items()}
    act = given.get("hidden_act", "gelu_pytorch_tanh")
    if act not in ACTIVATIONS:
        raise fault(f"vision_config.hidden_act is {short(act)}, which is not supported")
    return SiglipSizes(
        patch=sizes["patch_size"],
        width=sizes["hidden_size"],
        hidden=sizes["intermediate_size"],
        layers=sizes["num_hidden_layers"],
        heads=sizes["num_attention_heads"],
        positions=positions,
        activation=ACTIVATIONS[act],
        eps=given.get("layer_norm_eps", DEFAULT_EPS),
    )


def patches_in(side: Any, patch: Any) -> int:
    """Return how many patches a square of so many pixels has; 0 for anything odd."""
    are_counts = type(side) is int and type(patch) is int and patch > 0
    return (side // patch) ** 2 if are_counts else 0


def gguf_sizes(keys: GgufKeys, positions: int) -> SiglipSizes:
    """Return the sizes that an mmproj file's keys give."""
    return SiglipSizes(
        patch=keys.integer("vision.patch_size", 1, MAX_SIDE),
        width=keys.integer("vision.embedding_length", 1, MAX_WIDTH),
        hidden=keys.integer("vision.feed_forward_length", 1, MAX_HIDDEN),
        layers=keys.integer("vision.block_count", 1, MAX_LAYERS),
        heads=keys.integer("vision.attention.head_count", 1, MAX_HEADS),
        positions=positions,
        # llama.cpp's gelu is the one with a tanh.
        activation=GELU_TANH if keys.flag("use_gelu", True) else GELU,
        eps=keys.number("vision.attention.layer_norm_epsilon", *EPSILONS),
    )


class SiglipOps(BlockOps):
    """A SigLIP tower that is being written; subclasses put a projector behind it."""

    live: tuple[Ref | int, ...] = ()  # the dims of rows, where they change from call to call

    def __init__(
        self, sight: SiglipSight, kinds: Mapping[str, WeightKind], patches: int, name: str
    ) -> None:
        super().__init__(kinds, sight.shapes(), sight.sizes.eps, name)
        self.sizes = sight.sizes
        self.rows = (1, patches)
        self.wide = (1, patches, self.sizes.width)

    def _patches(self) -> Ref:
        """Take the patches of a tile of one size, with what their places add."""
        pixels = self.writer.input("patches", (*self.rows, self.sizes.patch_columns), F32)
        x = self._linear(PATCHES, pixels, self.rows)
        return self._add(x, self._constant(POSITIONS, self.shapes[POSITIONS]), self.wide)

    def _layers(self, x: Ref) -> Ref:
        for number in range(self.sizes.layers):
            path = f"layers.{number}"
            ahead = self._layer_norm(f"{path}.{FIRST_NORM}", x, self.wide)
            x = self._add(x, self._attention(path, ahead), self.wide)
            ahead = self._layer_norm(f"{path}.{SECOND_NORM}", x, self.wide)
            x = self._add(x, self._mlp(path, ahead), self.wide)
        return self._layer_norm(LAST_NORM, x, self.wide)

    def _mlp(self, path: str, x: Ref) -> Ref:
        up = self._linear(f"{path}.{UP}", x, self.rows)
        dims = (*self.rows, self.sizes.hidden)
        up = self._gelu(up, dims, is_exact=self.sizes.activation == GELU)
        return self._linear(f"{path}.{DOWN}", up, self.rows)

    def _attention(self, path: str, x: Ref) -> Ref:
        """Write attention in which each patch sees all of its tile."""
        c = self.sizes
        split = (*self.rows, c.heads, c.head_dim)
        by_heads = (1, c.heads, self.rows[1], c.head_dim)
        q, k, v = (
            self._swapped(
                self._viewed(self._linear(f"{path}.{name}", x, self.rows), split, self.live),
                by_heads,
            )
            for name in (QUERIES, KEYS, VALUES)
        )
        mixed = self._computed("et_vk.sdpa.default", by_heads, q, k, v, None, c.head_dim**-0.5)
        flat = self._viewed(self._swapped(mixed, split), self.wide, self.live)
        return self._linear(f"{path}.{MIXED}", flat, self.rows)
