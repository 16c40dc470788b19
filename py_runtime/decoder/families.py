"""Families of models: one row each. The exporter and the reader of GGUF files go by this table.

What a model says of itself comes in the words of a Hugging Face config.json, whole: sizes, biases,
`rope_parameters`, `layer_types`. The GGUF reader writes the same from metadata.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from py_runtime.base.model_errors import ModelError
from py_runtime.decoder.config import (
    AFTER,
    AROUND,
    BEFORE,
    CLAMPED,
    DELTA_NET,
    GELU,
    HEADS,
    LOCAL,
    ROWS,
    SHORT_CONV,
    SIGMOID,
    SILU,
    TABLES,
    DecoderConfig,
    DeltaSizes,
    LayerKind,
)
from py_runtime.decoder.mixtures import Mixture, expert_sizes
from py_runtime.decoder.rotary import PROPORTIONAL, Floats, Rope
from py_runtime.decoder.rotary import rotary_tables as both_tables

DEFAULT_CONTEXT = 2048  # the KV cache of a full context would not fit most users' GPUs
MIN_CONTEXT = 2  # a token, and one that follows it
MAX_TAPS = 64  # of a convolution
MAX_KEYS = 256  # columns of a delta net's key
MAX_PER_LAYER = 1 << 12  # columns that a token has for each layer
MAX_CHUNK = 512  # tokens in one call: longer prompts go in chunks, which keeps buffers small
# Caches of sliding layers hold a window and a chunk: where windows are short, so are chunks.
MIN_CHUNK, MAX_WINDOWS = 64, 2  # of the shortest window
ACTIVATIONS = {"silu": SILU, "gelu_pytorch_tanh": GELU}
# The other types change the table with the length of the text, which one fixed table cannot.
ROPE_TYPES = ("default", "linear", "llama3", "yarn", "longrope", PROPORTIONAL)
FULL, SLIDING = "full_attention", "sliding_attention"  # of layer_types, and of rope_parameters
FULL_OR_SLIDING = (FULL, SLIDING, "attention")

TILED = "linear_value_heads_tiled"  # of GGUF files alone: see DeltaSizes

Fused = Mapping[str, tuple[str, ...]]  # a tensor of a layer → the decoder's, one after the other
FUSED_QKV: Fused = {"self_attn.qkv_proj": tuple(f"self_attn.{part}_proj" for part in "qkv")}
FUSED_MLP: Fused = {"mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj")}
SHARED_MLP: Fused = {
    "shared_mlp.input_linear": ("mlp.gate_proj", "mlp.up_proj"),
    "shared_mlp.output_linear": ("mlp.down_proj",),
}
# GGUF keeps the name of the half that comes second.
GGUF_FUSED: Fused = {
    "attn_qkv": FUSED_QKV["self_attn.qkv_proj"],
    "ffn_up": FUSED_MLP["mlp.gate_up_proj"],
}


@dataclass(frozen=True)
class Family:
    """What sets it apart from Llama, and what it is called."""

    model_type: str  # in config.json
    architecture: str  # in GGUF: general.architecture
    known_as: str
    qkv_bias: bool = False  # always, and never on the output; else as `attention_bias` says
    qk_norm: str | None = None
    # llama.cpp's converter lays the rotary pairs of q and k side by side: rows (i, i + half) of a
    # head become (2i, 2i + 1).
    pairs_side_by_side: bool = False
    norms: str = BEFORE
    norms_from_one: bool = False  # checkpoints hold what norms have beyond 1; GGUF files do not
    activation: str = SILU
    root_of_width: bool = False  # embeddings are multiplied with it
    turns_only_sliding: bool = False  # where some layers slide, the others do not turn heads
    fused: Fused = field(default_factory=dict)  # in checkpoints
    gguf_fused: Fused = field(default_factory=dict)
    # What GGUF files call tensors of this family alone → what they are called in all others.
    gguf_names: Mapping[str, str] = field(default_factory=dict)
    predicts_ahead: bool = False  # GGUF files may have further layers, for tokens to come
    gated_attention: bool = False  # checkpoints have a head's gate behind its query, in one matrix
    mixers: Mapping[str, str] = field(default_factory=dict)  # of layer_types that are no attention
    mixture: Mixture | None = None  # MLPs are of experts, but for those of the first layers in some
    sinks: bool = False  # of attention
    value_norm: bool = False  # heads of v are normalised, without weights
    unscaled_scores: bool = False
    layer_scalars: bool = False  # each layer ends with a multiplication
    layers_differ: bool = False  # in their widths: GGUF files have a list of them


FAMILIES = (
    Family("llama", "llama", "Llama, SmolLM2, TinyLlama, Falcon3", pairs_side_by_side=True),
    Family("mistral", "llama", "Mistral", pairs_side_by_side=True),
    Family("qwen2", "qwen2", "Qwen2.5", qkv_bias=True),
    Family("qwen3", "qwen3", "Qwen3", qk_norm=HEADS),
    Family("qwen3_moe", "qwen3moe", "Qwen3 with experts", qk_norm=HEADS, mixture=Mixture()),
    Family("qwen3_vl_text", "qwen3vl", "the text part of Qwen3-VL", qk_norm=HEADS),
    Family(
        "phi3",
        "phi3",
        "Phi-3, Phi-3.5, Phi-4-mini",
        fused={**FUSED_QKV, **FUSED_MLP},
        gguf_fused=GGUF_FUSED,
    ),
    Family("smollm3", "smollm3", "SmolLM3", pairs_side_by_side=True),
    Family("granite", "granite", "Granite 3", pairs_side_by_side=True),
    Family(
        "granitemoehybrid",
        "granite",
        "Granite 4 (dense)",
        pairs_side_by_side=True,
        fused=SHARED_MLP,
    ),
    Family("minicpm", "minicpm", "MiniCPM", pairs_side_by_side=True),
    Family("ministral3", "mistral3", "Ministral 3", pairs_side_by_side=True),
    Family("exaone", "exaone", "EXAONE 3.5"),
    Family(
        "exaone4",
        "exaone4",
        "EXAONE 4",
        qk_norm=HEADS,
        norms=AFTER,
        turns_only_sliding=True,
    ),
    Family("olmo2", "olmo2", "OLMo 2", qk_norm=ROWS, norms=AFTER),
    Family("olmo3", "olmo2", "OLMo 3", qk_norm=ROWS, norms=AFTER),
    Family("gemma", "gemma", "Gemma", norms_from_one=True, activation=GELU, root_of_width=True),
    Family(
        "gemma2",
        "gemma2",
        "Gemma 2",
        norms=AROUND,
        norms_from_one=True,
        activation=GELU,
        root_of_width=True,
    ),
    Family(
        "gemma3_text",
        "gemma3",
        "Gemma 3 (text)",
        qk_norm=HEADS,
        norms=AROUND,
        norms_from_one=True,
        activation=GELU,
        root_of_width=True,
    ),
    Family(
        "gemma4_text",
        "gemma4",
        "the text part of Gemma 4 (E2B, E4B)",
        qk_norm=HEADS,
        norms=AROUND,
        activation=GELU,
        root_of_width=True,
        value_norm=True,
        unscaled_scores=True,
        layer_scalars=True,
        layers_differ=True,
    ),
    Family(
        "lfm2",
        "lfm2",
        "LFM2 (dense)",
        qk_norm=HEADS,
        gguf_names={"token_embd_norm": "output_norm"},
        mixers={"conv": SHORT_CONV},
    ),
    Family(
        "lfm2_moe",
        "lfm2moe",
        "LFM2 with experts",
        qk_norm=HEADS,
        gguf_names={"token_embd_norm": "output_norm"},
        mixers={"conv": SHORT_CONV},
        mixture=Mixture(SIGMOID),
    ),
    Family(
        "gpt_oss",
        "gpt-oss",
        "gpt-oss",
        gguf_names={"post_attention_norm": "ffn_norm"},
        mixture=Mixture(activation=CLAMPED, has_bias=True, interleaved=True),
        sinks=True,
    ),
    Family(
        "qwen3_5_text",
        "qwen35",
        "the text part of Qwen3.5 (dense)",
        qk_norm=HEADS,
        norms_from_one=True,
        gguf_names={"post_attention_norm": "ffn_norm"},
        predicts_ahead=True,
        gated_attention=True,
        mixers={"linear_attention": DELTA_NET},
    ),
)
BY_MODEL_TYPE = {family.model_type: family for family in FAMILIES}
# The first of an architecture: those that share one are alike to llama.cpp.
BY_ARCHITECTURE = {family.architecture: family for family in reversed(FAMILIES)}
SUPPORTED = f"{', '.join(BY_MODEL_TYPE)} ({', '.join(family.known_as for family in FAMILIES)})"


def longest_context(values: Mapping[str, Any]) -> int:
    """As far as the model goes, and as one fixed table of angles computes it."""
    longest: int = values["max_position_embeddings"]
    rope = ropes(values)[""]
    if rope.get("llama_4_scaling_beta"):  # queries grow past this, and not before
        longest = min(longest, rope["original_max_position_embeddings"])
    return longest


def ropes(values: Mapping[str, Any]) -> dict[str, Rope]:
    """The rotary parameters by the ending of their tables' names."""
    rope = values["rope_parameters"]
    if FULL in rope:
        return {"": rope[FULL], LOCAL: rope[SLIDING]}
    if rope["rope_type"] == "longrope" and rope.get("factor") is None:
        original = rope["original_max_position_embeddings"]
        rope = {**rope, "factor": values["max_position_embeddings"] / original}
    return {"": rope}


def rotary_tables(
    values: Mapping[str, Any], config: DecoderConfig, factors: np.ndarray | None = None
) -> dict[str, Floats]:
    """By name, [context, rotated dims]; `factors` divide the frequencies of all but sliding
    layers' own."""
    tables: dict[str, Floats] = {}
    for ending, rope in ropes(values).items():
        given = factors if ending == "" else None
        made = both_tables(rope, config.table_columns(ending), config.context, given)
        tables |= {f"{name}{ending}": table for name, table in zip(TABLES, made, strict=True)}
    return {name: tables[name] for name in config.tables}


def layer_kinds(values: Mapping[str, Any]) -> tuple[LayerKind, ...]:
    """Which layers slide and which turn; empty where none is out of the ordinary."""
    family = BY_MODEL_TYPE[values["model_type"]]
    layers: int = values["num_hidden_layers"]
    window = values.get("sliding_window") if values.get("use_sliding_window", True) else None
    types = values.get("layer_types") or [SLIDING if window else FULL] * layers
    turns = values.get("no_rope_layers") or [1] * layers
    if values.get("position_embedding_type", "rope") != "rope":
        turns = [0] * layers
    tables = set(ropes(values))
    dense = (values.get("num_dense_layers") or 0) if family.mixture else 0

    def kind(number: int) -> LayerKind:
        is_dense = number < dense
        if types[number] in family.mixers:
            mixer = family.mixers[types[number]]
            return LayerKind(tables=None, mixer=mixer, is_dense=is_dense)
        slides = bool(window) and types[number] == SLIDING
        turned = bool(turns[number])
        if family.turns_only_sliding and window:
            turned = turned and slides
        ending = LOCAL if types[number] == SLIDING and LOCAL in tables else ""
        sharing = number >= first_sharing
        return LayerKind(
            window if slides else None,
            ending if turned else None,
            is_dense=is_dense,
            head_dim=None if types[number] == SLIDING else values.get("global_head_dim"),
            hidden=2 * values["intermediate_size"] if sharing and doubled else None,
            shares=last_own[types[number]] if sharing else None,
        )

    known = {*FULL_OR_SLIDING, *family.mixers}
    if len(types) < layers or len(turns) < layers or not {*types[:layers]} <= known:
        raise ModelError(
            f"its layers are of the types {', '.join(sorted({*map(str, types)}))}; only "
            f"{', '.join(sorted(known))} are supported, one of them for each layer",
            "get another model",
        )
    first_sharing = layers - values.get("num_kv_shared_layers", 0)
    last_own = {types[number]: number for number in range(first_sharing)}
    if not {*types[first_sharing:layers]} <= {*last_own}:
        raise ModelError(
            "some of its layers share keys and values with none before them", "get another model"
        )
    doubled = bool(values.get("use_double_wide_mlp"))
    kinds = tuple(kind(number) for number in range(layers))
    return () if set(kinds) <= {LayerKind()} else kinds


def decoder_config(values: Mapping[str, Any], context: int | None = None) -> DecoderConfig:
    """Of a whole config.json of one of these families; without `context`, what most pages hold."""
    family = BY_MODEL_TYPE[values["model_type"]]
    heads, width = values["num_attention_heads"], values["hidden_size"]
    head_dim = values.get("head_dim") or width // heads
    rope = ropes(values)[""]
    turning = 1.0 if rope["rope_type"] == PROPORTIONAL else rope.get("partial_rotary_factor", 1.0)
    rotary = int(head_dim * turning)
    if head_dim < 2 or head_dim % 2 or rotary < 2 or rotary % 2 or rotary > head_dim:
        raise ModelError(
            f"heads are {head_dim} wide, of which {rotary} turn; rotary positions need even widths",
            "get another model",
        )
    _check_per_layer(values)
    # Of models that see, tokens of a picture may see each other; those of a text do not.
    if values.get("use_bidirectional_attention") not in (None, False, "vision"):
        raise ModelError(
            "its tokens see those after them, too, as in EmbeddingGemma (its config.json has "
            "use_bidirectional_attention), which is not supported",
            "get another model",
        )
    if values.get("num_local_experts") and not family.mixture:
        known = ", ".join(each.known_as for each in FAMILIES if each.mixture)
        raise ModelError(
            f"it is a mixture of experts, which is not supported for '{family.model_type}'",
            f"these are: {known}",
        )
    kinds = layer_kinds(values)
    mixers = {kind.mixer for kind in kinds}
    taps = values.get("conv_L_cache") or values.get("linear_conv_kernel_dim") or 0
    if mixers & {SHORT_CONV, DELTA_NET}:
        _check_convolution(taps, bool(values.get("conv_bias")))
    chosen = min(longest_context(values), DEFAULT_CONTEXT) if context is None else context
    if chosen < MIN_CONTEXT:
        raise ModelError(
            f"a context of {chosen} positions has no room for an answer", "get another model"
        )
    attention_bias = bool(values.get("attention_bias"))
    by_query = 1.0 if family.unscaled_scores else values.get("query_pre_attn_scalar")
    embedding = width**0.5 if family.root_of_width else values.get("embedding_multiplier") or 1.0
    # Where layers add r · f(norm(x)), x / r is held instead: then f is added as it is, and norms
    # give what they would, but for their eps.
    residual = values.get("residual_multiplier") or 1.0
    return DecoderConfig(
        vocabulary=values["vocab_size"],
        width=width,
        hidden=values.get("shared_intermediate_size") or values["intermediate_size"],
        layers=values["num_hidden_layers"],
        heads=heads,
        kv_heads=values["num_key_value_heads"],
        head_dim=head_dim,
        context=chosen,
        max_chunk=min(chosen, _most_at_once(kinds)),
        eps=values["rms_norm_eps"] / residual**2,
        rotary=rotary,
        qkv_bias=family.qkv_bias or attention_bias,
        o_bias=attention_bias and not family.qkv_bias,
        mlp_bias=bool(values.get("mlp_bias")),
        qk_norm=family.qk_norm,
        tied=bool(values["tie_word_embeddings"]),
        norms=family.norms,
        activation=family.activation,
        kinds=kinds,
        attention_scale=by_query**-0.5 if by_query else values.get("attention_multiplier"),
        score_cap=values.get("attn_logit_softcapping") or None,
        embedding_scale=embedding / residual,
        logit_divisor=values.get("logits_scaling") or 1.0,
        logit_cap=values.get("final_logit_softcapping") or None,
        conv_taps=taps,
        gated_attention=family.gated_attention,
        sinks=family.sinks,
        delta=_delta_sizes(values) if DELTA_NET in mixers else None,
        experts=expert_sizes(values, family.mixture) if family.mixture else None,
        value_norm=family.value_norm,
        per_layer=values.get("hidden_size_per_layer_input") or 0,
        layer_scalars=family.layer_scalars,
    )


def _most_at_once(kinds: Sequence[LayerKind]) -> int:
    """Tokens in one call."""
    windows = [kind.window for kind in kinds if kind.window is not None]
    return min([MAX_CHUNK, *(max(MIN_CHUNK, MAX_WINDOWS * window) for window in windows)])


def _delta_sizes(values: Mapping[str, Any]) -> DeltaSizes:
    sizes = DeltaSizes(
        values["linear_num_key_heads"],
        values["linear_num_value_heads"],
        values["linear_key_head_dim"],
        values["linear_value_head_dim"],
        bool(values.get(TILED)),
    )
    if not 1 <= sizes.key_dim <= MAX_KEYS or sizes.value_heads % sizes.key_heads:
        raise ModelError(
            f"{sizes.value_heads} value heads share {sizes.key_heads} key heads of "
            f"{sizes.key_dim}; they must share them evenly, of at most {MAX_KEYS} columns",
            "get another model",
        )
    return sizes


def _check_per_layer(values: Mapping[str, Any]) -> None:
    """Of families whose layers differ, share keys and values, and have embeddings of their own."""
    if values.get("attention_k_eq_v") or values.get("enable_moe_block"):
        raise ModelError(
            "its values are its keys, or it has experts beside each MLP, which is not supported",
            "get E2B or E4B of this family",
        )
    widest = values.get("global_head_dim") or 2
    if widest < 2 or widest % 2:
        raise ModelError(
            f"heads of full layers are {widest} wide; rotary positions need even widths",
            "get another model",
        )
    sharing, layers = values.get("num_kv_shared_layers", 0), values["num_hidden_layers"]
    if type(sharing) is not int or not 0 <= sharing < layers:
        raise ModelError(
            f"{sharing} of its {layers} layers share keys and values", "get another model"
        )
    columns, rows = values.get("hidden_size_per_layer_input") or 0, values["vocab_size"]
    if not 0 <= columns <= MAX_PER_LAYER:
        raise ModelError(
            f"tokens have {columns} columns for each layer; up to {MAX_PER_LAYER} are supported",
            "get another model",
        )
    if columns and values.get("vocab_size_per_layer_input", rows) != rows:
        raise ModelError(
            f"{values['vocab_size_per_layer_input']} tokens have embeddings for each layer, of "
            f"{rows}",
            "get another model",
        )


def _check_convolution(taps: int, has_bias: bool) -> None:
    if has_bias:
        raise ModelError(
            "its convolutions have biases, which is not supported", "get another model"
        )
    if not 2 <= taps <= MAX_TAPS:
        raise ModelError(
            f"its convolutions reach over {taps} tokens; 2 to {MAX_TAPS} are supported",
            "get another model",
        )
