"""The one decoder's sizes and choices, and the tensors that follow from them.

Tensors have names as in Hugging Face checkpoints without the leading `model.`; a quantised one has
its parts beside it (`layers.0.self_attn.q_proj.weight` and `.scales`).
"""

from dataclasses import dataclass

from py_runtime.base.dtypes import F32, U8, DType
from py_runtime.base.shapes import Dims, ceil_div
from py_runtime.program.weight_kinds import BLOCK, BLOCK_KINDS, FLOAT, Q4GSW, q4gsw_row_bytes

TABLES = ("cos", "sin")

SILU, GELU = "silu", "gelu"  # of the gate; gelu by its approximation with tanh
CLAMPED = "clamped"  # of experts alone: the gate of gpt-oss, within bounds
# Where a layer has norms: ahead of attention and MLP, after both, or in both places.
BEFORE, AFTER, AROUND = "before", "after", "around"
# What q and k are normalised over: each head, or all heads of a token together.
HEADS, ROWS = "heads", "rows"
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
# What mixes the tokens of a layer.
ATTENTION, SHORT_CONV, DELTA_NET = "attention", "short convolution", "delta net"
SINKS = "self_attn.sinks"
ROUTER, EXPERTS = "mlp.gate", "mlp.experts"  # of a mixture
SHARED = "shared_mlp"  # beside a mixture: what all tokens go through
CHOICE = "mlp.expert_bias"  # is added to the scores that choose experts, and to no shares
SOFTMAX, SIGMOID = "softmax", "sigmoid"  # how scores of experts become shares
# Embeddings that tokens have for each layer: a table of all rows, what is computed from the usual
# embedding and added, and what a layer does with its part.
PER_LAYER_TABLE = "embed_tokens_per_layer"
PER_LAYER_IN, PER_LAYER_IN_NORM = "per_layer_model_projection", "per_layer_projection_norm"
PER_LAYER_GATE, PER_LAYER_OUT = "per_layer_input_gate", "per_layer_projection"
PER_LAYER_NORM = "post_per_layer_input_norm"
LAYER_SCALAR = "layer_scalar"
LOCAL = "_local"  # ends the names of the rotary tables that sliding layers have to themselves
QUERY = "_query"  # ends the names of those that turn queries alone, where these are scaled, too


@dataclass(frozen=True)
class LayerKind:
    """In which the layers of one model differ."""

    window: int | None = None  # positions a token sees, its own included; None: all before it
    tables: str | None = ""  # ends the names of its rotary tables; None: heads do not turn
    mixer: str = ATTENTION
    is_dense: bool = False  # it has one MLP, where other layers have experts
    head_dim: int | None = None  # where its heads have a width of their own; all of it turns
    hidden: int | None = None  # where its MLP has a width of its own
    shares: int | None = None  # the layer whose keys and values it sees, in place of its own


@dataclass(frozen=True)
class DeltaSizes:
    """Heads of a gated delta net."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    # Value heads that share a key head lie so many apart as there are key heads; else side by side.
    tiled: bool = False

    @property
    def values(self) -> int:
        return self.value_heads * self.value_dim

    @property
    def columns(self) -> int:
        """Queries, keys and values of a token."""
        return 2 * self.key_heads * self.key_dim + self.values


@dataclass(frozen=True)
class ExpertSizes:
    """Of an MLP that is a mixture of many."""

    count: int
    used: int  # by a token
    hidden: int  # width of each
    renormalised: bool  # whether the shares of those used add up to 1
    scoring: str = SOFTMAX  # with SIGMOID, a bias for each expert takes part in the choice
    scale: float = 1.0  # of the shares
    activation: str = SILU
    has_bias: bool = False  # router and experts
    shared: int = 0  # width of one more that all tokens go through


@dataclass(frozen=True, kw_only=True)
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
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool
    qk_norm: str | None  # HEADS or ROWS
    tied: bool  # the head is the embedding
    norms: str
    activation: str
    kinds: tuple[LayerKind, ...]  # of the layers; empty: all are plain
    attention_scale: float | None  # of scores; None: head_dim^-½
    score_cap: float | None  # scores s become cap · tanh(s / cap)
    embedding_scale: float
    logit_divisor: float
    logit_cap: float | None
    conv_taps: int  # tokens that a convolution reaches over, its own included
    gated_attention: bool  # what it gives is multiplied with sigmoid(x Wgᵀ)
    delta: DeltaSizes | None
    sinks: bool  # of attention: scores that take a share of the softmax for nothing
    experts: ExpertSizes | None  # in place of each MLP
    value_norm: bool  # heads of v are normalised, without weights
    per_layer: int  # columns that a token's own embedding has for each layer
    layer_scalars: bool  # each layer ends with a multiplication
    scaled_queries: bool  # by their positions: queries have rotary tables of their own

    def layer_kind(self, number: int) -> LayerKind:
        return self.kinds[number] if self.kinds else LayerKind()

    def head_dim_of(self, kind: LayerKind) -> int:
        return kind.head_dim or self.head_dim

    def table_columns(self, ending: str) -> int:
        """Of the rotary tables with this ending: how many of a head's elements are rotated."""
        found = (kind.head_dim for kind in self.kinds if kind.tables == ending)
        return next(found, None) or self.rotary

    @property
    def tables(self) -> list[str]:
        """The names of all rotary tables."""
        found = {self.layer_kind(number).tables for number in range(self.layers)} - {None}
        found |= {QUERY} if self.scaled_queries else set()
        return [f"{table}{ending}" for ending in sorted(map(str, found)) for table in TABLES]


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


def layer_matrices(config: DecoderConfig, kind: LayerKind) -> dict[str, tuple[int, int, bool]]:
    """Every matrix of a layer that has a kind: rows, columns, whether it has a bias."""
    c = config
    head_dim = c.head_dim_of(kind)
    q_rows, kv_rows = c.heads * head_dim, c.kv_heads * head_dim
    if kind.mixer == SHORT_CONV:
        mixer = {
            "conv.in_proj": (3 * c.width, c.width, False),
            "conv.out_proj": (c.width, c.width, False),
        }
    elif kind.mixer == DELTA_NET and c.delta is not None:
        mixer = {
            "linear_attn.in_proj_qkv": (c.delta.columns, c.width, False),
            "linear_attn.in_proj_z": (c.delta.values, c.width, False),
            "linear_attn.in_proj_b": (c.delta.value_heads, c.width, False),
            "linear_attn.in_proj_a": (c.delta.value_heads, c.width, False),
            "linear_attn.out_proj": (c.width, c.delta.values, False),
        }
    else:
        gate = {"self_attn.g_proj": (q_rows, c.width, c.qkv_bias)} if c.gated_attention else {}
        own = {
            "self_attn.k_proj": (kv_rows, c.width, c.qkv_bias),
            "self_attn.v_proj": (kv_rows, c.width, c.qkv_bias),
        }
        mixer = {
            "self_attn.q_proj": (q_rows, c.width, c.qkv_bias),
            **(own if kind.shares is None else {}),
            **gate,
            "self_attn.o_proj": (c.width, q_rows, c.o_bias),
        }
    per_layer = {
        PER_LAYER_GATE: (c.per_layer, c.width, False),
        PER_LAYER_OUT: (c.width, c.per_layer, False),
    }
    return mixer | _mlp_matrices(c, kind) | (per_layer if c.per_layer else {})


def _mlp_matrices(c: DecoderConfig, kind: LayerKind) -> dict[str, tuple[int, int, bool]]:
    """Those of experts lie one below the other, in one matrix."""
    if c.experts is None or kind.is_dense:
        return _one_mlp(c, "mlp", kind.hidden or c.hidden)
    rows, has_bias = c.experts.count * c.experts.hidden, c.experts.has_bias
    shared = _one_mlp(c, SHARED, c.experts.shared) if c.experts.shared else {}
    return {
        ROUTER: (c.experts.count, c.width, has_bias),
        f"{EXPERTS}.gate_proj": (rows, c.width, has_bias),
        f"{EXPERTS}.up_proj": (rows, c.width, has_bias),
        f"{EXPERTS}.down_proj": (c.experts.count * c.width, c.experts.hidden, has_bias),
        **shared,
    }


def _one_mlp(c: DecoderConfig, path: str, hidden: int) -> dict[str, tuple[int, int, bool]]:
    return {
        f"{path}.gate_proj": (hidden, c.width, c.mlp_bias),
        f"{path}.up_proj": (hidden, c.width, c.mlp_bias),
        f"{path}.down_proj": (c.width, hidden, c.mlp_bias),
    }


def layer_vectors(config: DecoderConfig, kind: LayerKind) -> dict[str, Dims]:
    """Every other tensor of a layer: norms, and what convolves. They are f32."""
    vectors: dict[str, Dims] = {
        f"{norm}.weight": (config.width,) for norm in LAYER_NORMS[config.norms]
    }
    if config.experts and config.experts.scoring == SIGMOID and not kind.is_dense:
        vectors[CHOICE] = (config.experts.count,)
    if config.per_layer:
        vectors[f"{PER_LAYER_NORM}.weight"] = (config.width,)
    if config.layer_scalars:
        vectors[f"{LAYER_SCALAR}.weight"] = (1,)
    if kind.mixer == SHORT_CONV:
        return vectors | {"conv.conv.weight": (config.width, config.conv_taps)}
    if kind.mixer == DELTA_NET and config.delta is not None:
        return vectors | {
            "linear_attn.conv1d.weight": (config.delta.columns, config.conv_taps),
            "linear_attn.decay.weight": (config.delta.value_heads,),
            "linear_attn.dt.bias": (config.delta.value_heads,),
            "linear_attn.norm.weight": (config.delta.value_dim,),
        }
    if config.sinks:
        vectors[SINKS] = (config.heads,)
    norms = ("q_norm", "k_norm") if kind.shares is None else ("q_norm",)
    for norm, columns in zip(norms, qk_norm_columns(config, kind), strict=False):
        vectors[f"self_attn.{norm}.weight"] = (columns,)
    return vectors


def weight_names(config: DecoderConfig) -> list[str]:
    """Every matrix that has a kind."""
    names = ["embed_tokens.weight"] + ([] if config.tied else ["lm_head.weight"])
    if config.per_layer:
        names += [f"{PER_LAYER_TABLE}.weight", f"{PER_LAYER_IN}.weight"]
    for number in range(config.layers):
        matrices = layer_matrices(config, config.layer_kind(number))
        names += [f"layers.{number}.{name}.weight" for name in matrices]
    return names


def expected_shapes(config: DecoderConfig) -> dict[str, Dims]:
    """Every tensor a checkpoint must have, in its dense form."""
    c = config
    shapes: dict[str, Dims] = {"norm.weight": (c.width,)}
    for name in ["embed_tokens.weight"] + ([] if c.tied else ["lm_head.weight"]):
        shapes[name] = (c.vocabulary, c.width)
    if c.per_layer:
        shapes[f"{PER_LAYER_TABLE}.weight"] = (c.vocabulary, c.layers * c.per_layer)
        shapes[f"{PER_LAYER_IN}.weight"] = (c.layers * c.per_layer, c.width)
        shapes[f"{PER_LAYER_IN_NORM}.weight"] = (c.per_layer,)
    for number in range(c.layers):
        kind = c.layer_kind(number)
        for name, (rows, columns, has_bias) in layer_matrices(c, kind).items():
            shapes[f"layers.{number}.{name}.weight"] = (rows, columns)
            if has_bias:
                shapes[f"layers.{number}.{name}.bias"] = (rows,)
        for name, dims in layer_vectors(c, kind).items():
            shapes[f"layers.{number}.{name}"] = dims
    return shapes


def qk_norm_columns(config: DecoderConfig, kind: LayerKind) -> tuple[int, ...]:
    """What the norms of q and k are as long as; empty where there are none."""
    c, head_dim = config, config.head_dim_of(kind)
    if c.qk_norm == ROWS:
        return (c.heads * head_dim, c.kv_heads * head_dim)
    return (head_dim, head_dim) if c.qk_norm == HEADS else ()
