"""The reader of a config.json: a decoder's sizes, its kinds of layers and its rotary tables.

The config.json is whole, as transformers writes it: sizes, biases, `rope_parameters`,
`layer_types`. The GGUF reader makes the same of a file's metadata. What a family has in other words
is in its own file, in py_runtime/decoder/families.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder.config import (
    BESIDE,
    DELTA_NET,
    GELU,
    LOCAL,
    MAMBA,
    NOTHING,
    QUERY,
    RELU_SQUARED,
    SHORT_CONV,
    SILU,
    TABLES,
    AttentionPart,
    DecoderConfig,
    DeltaSizes,
    LayerKind,
    MixerPart,
    MlpPart,
    NormPart,
    RopePart,
    SeenPart,
)
from py_runtime.decoder.families import BY_MODEL_TYPE, FAMILIES
from py_runtime.decoder.family import Family
from py_runtime.decoder.limits import MAX_KEYS, MAX_PER_LAYER, MAX_TAPS
from py_runtime.decoder.mixtures import expert_sizes
from py_runtime.decoder.rotary import (
    PROPORTIONAL,
    SECTIONS,
    SEVERAL,
    Floats,
    Rope,
    axes_of,
    query_scales,
)
from py_runtime.decoder.rotary import rotary_tables as both_tables
from py_runtime.decoder.scans import scan_sizes
from py_runtime.decoder.words import AXES, DEEP, FULL, SLIDING, TILED

DEFAULT_CONTEXT = 2048  # the KV cache of a full context would not fit most users' GPUs
SEEING_CONTEXT = 4096  # an image may take a thousand tokens
MIN_CONTEXT = 2  # a token, and one that follows it
MAX_CHUNK = 512  # tokens in one call: longer prompts go in chunks, which keeps buffers small
# Caches of sliding layers hold a window and a chunk: where windows are short, so are chunks.
MIN_CHUNK, MAX_WINDOWS = 64, 2  # of the shortest window
ACTIVATIONS = {"silu": SILU, "gelu_pytorch_tanh": GELU, "relu2": RELU_SQUARED}
# The other types change the table with the length of the text, which one fixed table cannot.
ROPE_TYPES = ("default", "linear", "llama3", "yarn", "longrope", PROPORTIONAL)
TAPS = ("conv_L_cache", "linear_conv_kernel_dim", "mamba_d_conv")  # of a convolution
FULL_OR_SLIDING = (FULL, SLIDING, "attention")


def ropes(values: Mapping[str, Any]) -> dict[str, Rope]:
    """Return the rotary parameters by the ending of their tables' names."""
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
    """Return the tables by name, each [context, rotated dims].

    `factors` divide the frequencies of all tables but the sliding layers' own.
    """
    tables: dict[str, Floats] = {}
    for ending, rope in ropes(values).items():
        given = factors if ending == "" else None
        made = both_tables(rope, config.table_columns(ending), config.context, given)
        tables |= {f"{name}{ending}": table for name, table in zip(TABLES, made, strict=True)}
    if config.rope.scaled_queries:  # turning is linear: what is scaled may as well be the tables
        scales = query_scales(ropes(values)[""], config.context)[:, np.newaxis]
        tables |= {f"{name}{QUERY}": tables[name] * scales for name in TABLES}
    found = {name: tables[name] for name in config.tables}
    if config.sees and config.sees.axes:
        by_column = np.array(config.sees.axes * 2)  # halves of a head turn alike
        for axis in range(SEVERAL):
            found[f"{AXES}.{axis}"] = (by_column == axis).astype(np.float32)
    return found


def layer_kinds(values: Mapping[str, Any]) -> tuple[LayerKind, ...]:
    """Return which layers slide and which turn; empty where none is out of the ordinary."""
    family = BY_MODEL_TYPE[values["model_type"]]
    layers: int = values["num_hidden_layers"]
    window = values.get("sliding_window") if values.get("use_sliding_window", True) else None
    types = values.get("layer_types") or [SLIDING if window else FULL] * layers
    turns = values.get("no_rope_layers") or [1] * layers
    if values.get("position_embedding_type", "rope") != "rope":
        turns = [0] * layers
    tables = set(ropes(values))
    dense = (values.get("num_dense_layers") or 0) if family.mixture else 0
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

    def kind(number: int) -> LayerKind:
        is_dense = number < dense
        if types[number] in family.mixers:
            mixer = family.mixers[types[number]]
            return LayerKind(
                tables="" if mixer == BESIDE else None,
                mixer=mixer,
                is_dense=is_dense,
                has_mlp=mixer == NOTHING or not family.one_part,
            )
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
            has_mlp=not family.one_part,
        )

    kinds = tuple(kind(number) for number in range(layers))
    return () if set(kinds) <= {LayerKind()} else kinds


def decoder_config(
    values: Mapping[str, Any], context: int | None = None, sees: bool = False
) -> DecoderConfig:
    """Return the decoder of a whole config.json; without `context`, it holds what most pages do.

    `sees`: images take part in prompts.
    """
    family = BY_MODEL_TYPE[values["model_type"]]
    heads, width = values["num_attention_heads"], values["hidden_size"]
    head_dim = values.get("head_dim") or width // heads
    rotated = _rotary_width(values, head_dim)
    _check_per_layer(values)
    _check_supported(values, family)
    kinds = layer_kinds(values)
    mixers = {kind.mixer for kind in kinds}
    taps = next((values[name] for name in TAPS if values.get(name)), 0)
    if mixers & {SHORT_CONV, DELTA_NET, MAMBA, BESIDE}:
        _check_convolution(taps, bool(values.get("conv_bias")))
    longest: int = values["max_position_embeddings"]
    usual = SEEING_CONTEXT if sees else DEFAULT_CONTEXT
    chosen = min(longest, usual) if context is None else context
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
        layers=values["num_hidden_layers"],
        context=chosen,
        max_chunk=min(chosen, _max_chunk(kinds)),
        attention=AttentionPart(
            heads=heads,
            kv_heads=values["num_key_value_heads"],
            head_dim=head_dim,
            qkv_bias=family.qkv_bias or attention_bias,
            o_bias=attention_bias and not family.qkv_bias,
            qk_norm=family.qk_norm,
            value_norm=family.value_norm,
            scale=by_query**-0.5 if by_query else values.get("attention_multiplier"),
            score_cap=values.get("attn_logit_softcapping") or None,
            sinks=family.sinks,
            is_gated=family.gated_attention,
        ),
        rope=RopePart(
            rotated=rotated,
            scaled_queries=family.scales_queries
            and _scales_queries(values, chosen, rotated, head_dim),
        ),
        mixer=MixerPart(
            conv_taps=taps,
            delta=_delta_sizes(values) if DELTA_NET in mixers else None,
            scan=scan_sizes(values) if mixers & {MAMBA, BESIDE} else None,
        ),
        mlp=MlpPart(
            hidden=values.get("shared_intermediate_size") or values["intermediate_size"],
            activation=family.activation,
            has_bias=bool(values.get("mlp_bias")),
            experts=expert_sizes(values, family.mixture) if family.mixture else None,
        ),
        norms=NormPart(place=family.norms, eps=values["rms_norm_eps"] / residual**2),
        kinds=kinds,
        embedding_scale=embedding / residual,
        per_layer=values.get("hidden_size_per_layer_input") or 0,
        layer_scalars=family.layer_scalars,
        tied=bool(values["tie_word_embeddings"]),
        logit_divisor=values.get("logits_scaling") or 1.0,
        logit_cap=values.get("final_logit_softcapping") or None,
        sees=_seen_part(values, family, rotated) if sees else None,
    )


def _seen_part(values: Mapping[str, Any], family: Family, rotated: int) -> SeenPart:
    rope = ropes(values)[""]
    return SeenPart(
        whole=family.sees_whole,
        deep=values.get(DEEP) or 0,
        axes=axes_of(rope, rotated) if rope.get(SECTIONS) else (),
    )


def _rotary_width(values: Mapping[str, Any], head_dim: int) -> int:
    """Return how many columns of a head turn."""
    rope = ropes(values)[""]
    turning = 1.0 if rope["rope_type"] == PROPORTIONAL else rope.get("partial_rotary_factor", 1.0)
    rotary = int(head_dim * turning)
    if head_dim < 2 or head_dim % 2 or rotary < 2 or rotary % 2 or rotary > head_dim:
        raise ModelError(
            f"heads are {head_dim} wide, of which {rotary} turn; rotary positions need even widths",
            "get another model",
        )
    return rotary


def _scales_queries(values: Mapping[str, Any], context: int, rotary: int, head_dim: int) -> bool:
    """Tell whether some position is so far that its queries are scaled."""
    rope = ropes(values)[""]
    if not rope.get("llama_4_scaling_beta"):
        return False
    original = rope.get("original_max_position_embeddings")
    if type(original) is not int or original < 1:
        raise ModelError(
            f"its queries are scaled beyond an original context of {short(original)} positions",
            "get another model",
        )
    if context <= original:
        return False
    if rotary != head_dim:
        raise ModelError(
            f"queries beyond {original} positions are scaled, but only {rotary} of a head's "
            f"{head_dim} columns turn, which is not supported",
            "take a shorter context, or another model",
        )
    return True


def _check_supported(values: Mapping[str, Any], family: Family) -> None:
    # "vision" lets the tokens of a picture attend to each other; text stays causal.
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


def _max_chunk(kinds: Sequence[LayerKind]) -> int:
    """Return the most tokens in one call."""
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
    """Check models whose layers differ, share keys and values, and have embeddings of their own."""
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
