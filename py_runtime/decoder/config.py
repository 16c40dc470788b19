"""The one decoder's sizes and choices, and the tensors that follow from them.

Tensors have names as in Hugging Face checkpoints without the leading `model.`; a quantised one has
its parts beside it (`layers.0.self_attn.q_proj.weight` and `.scales`).
"""

from dataclasses import dataclass

from py_runtime.base.dtypes import F32, U8, DType
from py_runtime.base.shapes import Dims, ceil_div
from py_runtime.program.weight_kinds import BLOCK, BLOCK_KINDS, q4gsw_row_bytes

FLOAT = "f32"
Q4GSW = "q4gsw"


@dataclass(frozen=True)
class DecoderConfig:
    """The sizes and choices in which the families differ."""

    vocabulary: int
    width: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int  # positions the caches hold
    max_chunk: int  # most tokens in one call
    eps: float
    rotary: int  # how many of head_dim's elements are rotated
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    tied: bool = False  # the head is the embedding


@dataclass(frozen=True)
class WeightKind:
    """How one weight matrix is stored."""

    name: str  # f32, q4gsw, or one of BLOCK_KINDS
    group_size: int = BLOCK


def weight_parts(kind: WeightKind, rows: int, columns: int) -> dict[str, tuple[Dims, DType]]:
    """Dims and dtype of what a weight of this kind consists of."""
    if kind.name == FLOAT:
        return {"weight": ((rows, columns), F32)}
    if kind.name == Q4GSW:
        scales = (ceil_div(columns, kind.group_size), ceil_div(rows, 4) * 4)
        return {"weight": ((rows, q4gsw_row_bytes(columns)), U8), "scales": (scales, F32)}
    block = BLOCK_KINDS[kind.name]
    parts = {"weight": (block.weight_dims(rows, columns), block.dtype)}
    if block.has_scales:
        parts["scales"] = (block.scale_dims(rows, columns), block.scale_dtype)
    return parts


def bias_rows(kind: WeightKind, rows: int) -> int:
    """Kernels of q4gsw take four rows at a time."""
    return ceil_div(rows, 4) * 4 if kind.name == Q4GSW else rows


def weight_names(config: DecoderConfig) -> list[str]:
    """Every matrix that has a kind."""
    names = ["embed_tokens.weight"] + ([] if config.tied else ["lm_head.weight"])
    for number in range(config.layers):
        attention = [f"self_attn.{part}_proj.weight" for part in "qkvo"]
        mlp = [f"mlp.{part}_proj.weight" for part in ("gate", "up", "down")]
        names += [f"layers.{number}.{name}" for name in (*attention, *mlp)]
    return names


def expected_shapes(config: DecoderConfig) -> dict[str, Dims]:
    """Every tensor a checkpoint must have, in its dense form."""
    c = config
    q_rows, kv_rows = c.heads * c.head_dim, c.kv_heads * c.head_dim
    # part → rows, columns, whether it has a bias
    matrices = {
        "q_proj": (q_rows, c.width, c.qkv_bias),
        "k_proj": (kv_rows, c.width, c.qkv_bias),
        "v_proj": (kv_rows, c.width, c.qkv_bias),
        "o_proj": (c.width, q_rows, c.o_bias),
        "gate_proj": (c.hidden, c.width, c.mlp_bias),
        "up_proj": (c.hidden, c.width, c.mlp_bias),
        "down_proj": (c.width, c.hidden, c.mlp_bias),
    }
    shapes: dict[str, Dims] = {"norm.weight": (c.width,)}
    for name in weight_names(config):
        owner = name.removesuffix(".weight")
        part = owner.rpartition(".")[2]
        rows, columns, has_bias = matrices.get(part, (c.vocabulary, c.width, False))
        shapes[name] = (rows, columns)
        if has_bias:
            shapes[f"{owner}.bias"] = (rows,)
    for number in range(c.layers):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"layers.{number}.{norm}.weight"] = (c.width,)
        if c.qk_norm:
            for norm in ("q_norm", "k_norm"):
                shapes[f"layers.{number}.self_attn.{norm}.weight"] = (c.head_dim,)
    return shapes
