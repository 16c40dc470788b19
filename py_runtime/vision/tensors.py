"""The tensors of a vision tower: the engine's names, their shapes, and what files call them."""

from collections.abc import Iterable

from py_runtime.base.shapes import Dims
from py_runtime.vision.config import TowerConfig

PATCHES, POSITIONS = "patch_embedding", "position_embedding.weight"
FIRST_NORM, SECOND_NORM, LAST_NORM = "input_layernorm", "pre_mlp_layernorm", "norm"
QUERIES, KEYS, VALUES, MIXED = (f"self_attn.{part}_proj" for part in "qkvo")
UP, DOWN = "mlp.up_proj", "mlp.down_proj"
PROJECTOR = "projector"

# What mmproj files and checkpoints call them; layers have theirs behind a number.
GGUF_NAMES = {
    PATCHES: "v.patch_embd",
    POSITIONS.removesuffix(".weight"): "v.position_embd",
    LAST_NORM: "v.post_ln",
    PROJECTOR: "mm.model.fc",
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
_TOWER = "model.vision_model"
CHECKPOINT_NAMES = {
    PATCHES: f"{_TOWER}.embeddings.patch_embedding",
    POSITIONS.removesuffix(".weight"): f"{_TOWER}.embeddings.position_embedding",
    LAST_NORM: f"{_TOWER}.post_layernorm",
    PROJECTOR: "model.connector.modality_projection.proj",
}
CHECKPOINT_LAYERS, CHECKPOINT_PARTS = (
    f"{_TOWER}.encoder.layers",
    {
        FIRST_NORM: "layer_norm1",
        MIXED: "self_attn.out_proj",
        SECOND_NORM: "layer_norm2",
        UP: "mlp.fc1",
        DOWN: "mlp.fc2",
    },
)


def expected_shapes(config: TowerConfig) -> dict[str, Dims]:
    """Return every tensor that a file must have."""
    c = config
    joined = c.width * c.factor**2
    shapes: dict[str, Dims] = {
        **_with_bias(PATCHES, c.width, c.patch_columns),
        POSITIONS: (c.patches, c.width),
        **_with_bias(LAST_NORM, c.width),
        f"{PROJECTOR}.weight": (c.out, joined),
    }
    for number in range(c.layers):
        path = f"layers.{number}."
        for norm in (FIRST_NORM, SECOND_NORM):
            shapes |= _with_bias(path + norm, c.width)
        for name in (QUERIES, KEYS, VALUES, MIXED):
            shapes |= _with_bias(path + name, c.width, c.width)
        shapes |= _with_bias(path + UP, c.hidden, c.width)
        shapes |= _with_bias(path + DOWN, c.width, c.hidden)
    return shapes


def is_matrix(name: str, dims: Dims) -> bool:
    """Return whether a tensor may be stored in another kind than f32; positions are added."""
    return len(dims) == 2 and name != POSITIONS


def gguf_name(name: str) -> str:
    """Return what mmproj files call a tensor."""
    return _named(name, GGUF_NAMES, GGUF_LAYERS, GGUF_PARTS)


def checkpoint_name(name: str) -> str:
    """Return what checkpoints call a tensor."""
    return _named(name, CHECKPOINT_NAMES, CHECKPOINT_LAYERS, CHECKPOINT_PARTS)


def _named(name: str, whole: dict[str, str], layers: str, parts: dict[str, str]) -> str:
    owner, _, ending = name.rpartition(".")
    if owner in whole:
        return f"{whole[owner]}.{ending}"
    _, number, part = owner.split(".", 2)
    return f"{layers}.{number}.{parts.get(part, part)}.{ending}"


def _with_bias(path: str, *dims: int) -> dict[str, Dims]:
    return {f"{path}.weight": dims, f"{path}.bias": dims[:1]}


def fitting(found: Dims, wanted: Dims) -> bool:
    """Return whether a stored shape is the wanted one; a kernel's pixels are columns here."""
    return _flat(found) == wanted or found == wanted


def _flat(dims: Iterable[int]) -> Dims:
    first, *others = dims
    columns = 1
    for each in others:
        columns *= each
    return (first, columns) if others else (first,)
