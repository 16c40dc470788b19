"""The decoder's tensors: their names, shapes and stored forms, as they follow from its config.

Tensors have names as in Hugging Face checkpoints without the leading `model.`; a quantised one has
its parts beside it (`layers.0.self_attn.q_proj.weight` and `.scales`).
"""

from dataclasses import dataclass

from py_runtime.base.dtypes import F32, U8, DType
from py_runtime.base.shapes import Dims, ceil_div
from py_runtime.decoder.config import (
    AFTER,
    AROUND,
    BEFORE,
    BESIDE,
    DELTA_NET,
    HEADS,
    MAMBA,
    NOTHING,
    RELU_SQUARED,
    ROWS,
    SHORT_CONV,
    SIGMOID,
    DecoderConfig,
    LayerKind,
    ScanSizes,
)
from py_runtime.program.weight_kinds import BLOCK, BLOCK_KINDS, FLOAT, Q4GSW, q4gsw_row_bytes

LAYER_NORMS = {
    BEFORE: ("input_layernorm", "post_attention_layernorm"),
    AFTER: ("post_attention_layernorm", "post_feedforward_layernorm"),
    AROUND: (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
}
SINKS = "self_attn.sinks"
ROUTER, EXPERTS = "mlp.gate", "mlp.experts"  # of a mixture
SHARED = "shared_mlp"  # beside a mixture: what all tokens go through
CHOICE = "mlp.expert_bias"  # is added to the scores that choose experts, and to no shares
# Embeddings that tokens have for each layer: a table of all rows, what is computed from the usual
# embedding and added, and what a layer does with its part.
PER_LAYER_TABLE = "embed_tokens_per_layer"
PER_LAYER_IN, PER_LAYER_IN_NORM = "per_layer_model_projection", "per_layer_projection_norm"
PER_LAYER_GATE, PER_LAYER_OUT = "per_layer_input_gate", "per_layer_projection"
PER_LAYER_NORM = "post_per_layer_input_norm"
LAYER_SCALAR = "layer_scalar"
# Of a head that proposes tokens, beside its layer: norms of a token's embedding and of the state
# before it, what makes one of both, and the norm of what the head gives.
HEAD_EMBEDDING, HEAD_STATE, HEAD_IN, HEAD_NORM = "enorm", "hnorm", "eh_proj", "shared_head.norm"


@dataclass(frozen=True)
class WeightKind:
    """The format in which one weight matrix is stored."""

    name: str  # f32, q4gsw, or one of BLOCK_KINDS
    group_size: int = BLOCK


def weight_parts(kind: WeightKind, rows: int, columns: int) -> dict[str, tuple[Dims, DType]]:
    """Return the dims and dtypes of what a weight of this kind consists of."""
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
    """Return how long a bias is stored: kernels of q4gsw take four rows at a time."""
    return ceil_div(rows, 4) * 4 if kind.name == Q4GSW else rows


def layer_matrices(config: DecoderConfig, kind: LayerKind) -> dict[str, tuple[int, int, bool]]:
    """Return every matrix of a layer that has a kind: rows, columns, whether it has a bias."""
    c = config
    per_layer = {
        PER_LAYER_GATE: (c.per_layer, c.width, False),
        PER_LAYER_OUT: (c.width, c.per_layer, False),
    }
    mlp = _mlp_matrices(c, kind) if kind.has_mlp else {}
    return _mixer_matrices(c, kind) | mlp | (per_layer if c.per_layer else {})


def _mixer_matrices(c: DecoderConfig, kind: LayerKind) -> dict[str, tuple[int, int, bool]]:
    delta, scan = c.mixer.delta, c.mixer.scan
    if kind.mixer == SHORT_CONV:
        return {
            "conv.in_proj": (3 * c.width, c.width, False),
            "conv.out_proj": (c.width, c.width, False),
        }
    if kind.mixer == DELTA_NET and delta is not None:
        return {
            "linear_attn.in_proj_qkv": (delta.columns, c.width, False),
            "linear_attn.in_proj_z": (delta.values, c.width, False),
            "linear_attn.in_proj_b": (delta.value_heads, c.width, False),
            "linear_attn.in_proj_a": (delta.value_heads, c.width, False),
            "linear_attn.out_proj": (c.width, delta.values, False),
        }
    if kind.mixer == NOTHING:
        return {}
    scans = {}
    if kind.mixer in (MAMBA, BESIDE) and scan is not None:
        scans = {
            "mamba.in_proj": (scan.projected, c.width, scan.proj_bias),
            "mamba.out_proj": (c.width, scan.values, scan.proj_bias),
        }
    return scans if kind.mixer == MAMBA else _attention_matrices(c, kind) | scans


def _attention_matrices(c: DecoderConfig, kind: LayerKind) -> dict[str, tuple[int, int, bool]]:
    part, head_dim = c.attention, c.attention.head_dim_of(kind)
    q_rows, kv_rows = part.heads * head_dim, part.kv_heads * head_dim
    own = {
        "self_attn.k_proj": (kv_rows, c.width, part.qkv_bias),
        "self_attn.v_proj": (kv_rows, c.width, part.qkv_bias),
    }
    gate = {"self_attn.g_proj": (q_rows, c.width, part.qkv_bias)}
    return {
        "self_attn.q_proj": (q_rows, c.width, part.qkv_bias),
        **(own if kind.shares is None else {}),
        **(gate if part.is_gated else {}),
        "self_attn.o_proj": (c.width, q_rows, part.o_bias),
    }


def _mlp_matrices(c: DecoderConfig, kind: LayerKind) -> dict[str, tuple[int, int, bool]]:
    """Return those of one MLP, or of experts, which lie one below the other in one matrix."""
    experts = c.mlp.experts
    if experts is None or kind.is_dense:
        return _one_mlp(c, "mlp", kind.hidden or c.mlp.hidden)
    rows, has_bias = experts.count * experts.hidden, experts.has_bias
    shared = _one_mlp(c, SHARED, experts.shared) if experts.shared else {}
    return {
        ROUTER: (experts.count, c.width, has_bias),
        f"{EXPERTS}.gate_proj": (rows, c.width, has_bias),
        f"{EXPERTS}.up_proj": (rows, c.width, has_bias),
        f"{EXPERTS}.down_proj": (experts.count * c.width, experts.hidden, has_bias),
        **shared,
    }


def _one_mlp(c: DecoderConfig, path: str, hidden: int) -> dict[str, tuple[int, int, bool]]:
    gate = {f"{path}.gate_proj": (hidden, c.width, c.mlp.has_bias)}
    return {
        **(gate if c.mlp.activation != RELU_SQUARED else {}),
        f"{path}.up_proj": (hidden, c.width, c.mlp.has_bias),
        f"{path}.down_proj": (c.width, hidden, c.mlp.has_bias),
    }


def layer_vectors(config: DecoderConfig, kind: LayerKind) -> dict[str, Dims]:
    """Return every other tensor of a layer: norms, and what convolves. They are f32."""
    c, experts, delta, taps = config, config.mlp.experts, config.mixer.delta, config.mixer.conv_taps
    vectors: dict[str, Dims] = {f"{norm}.weight": (c.width,) for norm in layer_norms(c, kind)}
    if experts and experts.scoring == SIGMOID and not kind.is_dense:
        vectors[CHOICE] = (experts.count,)
    if c.per_layer:
        vectors[f"{PER_LAYER_NORM}.weight"] = (c.width,)
    if c.layer_scalars:
        vectors[f"{LAYER_SCALAR}.weight"] = (1,)
    if kind.mixer == SHORT_CONV:
        return vectors | {"conv.conv.weight": (c.width, taps)}
    if kind.mixer == DELTA_NET and delta is not None:
        return vectors | {
            "linear_attn.conv1d.weight": (delta.columns, taps),
            "linear_attn.decay.weight": (delta.value_heads,),
            "linear_attn.dt.bias": (delta.value_heads,),
            "linear_attn.norm.weight": (delta.value_dim,),
        }
    if kind.mixer in (MAMBA, BESIDE) and c.mixer.scan is not None:
        vectors |= _scan_vectors(c.mixer.scan, taps)
    if kind.mixer in (MAMBA, NOTHING):
        return vectors
    if c.attention.sinks:
        vectors[SINKS] = (c.attention.heads,)
    norms = ("q_norm", "k_norm") if kind.shares is None else ("q_norm",)
    for norm, columns in zip(norms, qk_norm_columns(c, kind), strict=False):
        vectors[f"self_attn.{norm}.weight"] = (columns,)
    return vectors


def layer_norms(config: DecoderConfig, kind: LayerKind) -> tuple[str, ...]:
    """Return the names of the norms that a layer has; of one part it has one, ahead of it."""
    return LAYER_NORMS[BEFORE][:1] if kind.is_one_part else LAYER_NORMS[config.norms.place]


def _scan_vectors(scan: ScanSizes, taps: int) -> dict[str, Dims]:
    return {
        "mamba.conv1d.weight": (scan.columns, taps),
        **({"mamba.conv1d.bias": (scan.columns,)} if scan.conv_bias else {}),
        "mamba.decay.weight": (scan.heads,),
        "mamba.dt.bias": (scan.heads,),
        "mamba.skip.weight": (scan.heads,),
        **({"mamba.norm.weight": (scan.values,)} if scan.norm_groups else {}),
    }


def weight_names(config: DecoderConfig) -> list[str]:
    """Return the names of all matrices that have a kind."""
    names = ["embed_tokens.weight"] + ([] if config.tied else ["lm_head.weight"])
    if config.per_layer:
        names += [f"{PER_LAYER_TABLE}.weight", f"{PER_LAYER_IN}.weight"]
    for number in config.with_head:
        matrices = layer_matrices(config, config.layer_kind(number))
        names += [f"layers.{number}.{name}.weight" for name in matrices]
    return names + ([f"layers.{config.layers}.{HEAD_IN}.weight"] if config.foresees else [])


def expected_shapes(config: DecoderConfig) -> dict[str, Dims]:
    """Return every tensor that a checkpoint must have, in its dense form."""
    c = config
    shapes: dict[str, Dims] = {"norm.weight": (c.width,)}
    for name in ["embed_tokens.weight"] + ([] if c.tied else ["lm_head.weight"]):
        shapes[name] = (c.vocabulary, c.width)
    if c.per_layer:
        shapes[f"{PER_LAYER_TABLE}.weight"] = (c.vocabulary, c.layers * c.per_layer)
        shapes[f"{PER_LAYER_IN}.weight"] = (c.layers * c.per_layer, c.width)
        shapes[f"{PER_LAYER_IN_NORM}.weight"] = (c.per_layer,)
    for number in c.with_head:
        kind = c.layer_kind(number)
        for name, (rows, columns, has_bias) in layer_matrices(c, kind).items():
            shapes[f"layers.{number}.{name}.weight"] = (rows, columns)
            if has_bias:
                shapes[f"layers.{number}.{name}.bias"] = (rows,)
        for name, dims in layer_vectors(c, kind).items():
            shapes[f"layers.{number}.{name}"] = dims
    if c.foresees:
        shapes[f"layers.{c.layers}.{HEAD_IN}.weight"] = (c.width, 2 * c.width)
        for name in (HEAD_EMBEDDING, HEAD_STATE, HEAD_NORM):
            shapes[f"layers.{c.layers}.{name}.weight"] = (c.width,)
    return shapes


def qk_norm_columns(config: DecoderConfig, kind: LayerKind) -> tuple[int, ...]:
    """Return how long the norms of q and k are; empty where there are none."""
    part, head_dim = config.attention, config.attention.head_dim_of(kind)
    if part.qk_norm == ROWS:
        return (part.heads * head_dim, part.kv_heads * head_dim)
    return (head_dim, head_dim) if part.qk_norm == HEADS else ()
