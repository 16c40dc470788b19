"""EmbeddingGemma: Gemma 3 whose tokens see those behind them, too, with products behind a mean."""

from typing import Any

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.limits import MAX_CONTEXT, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, THETAS
from py_runtime.decoder.words import FULL, SLIDING, Words
from py_runtime.encoder.family import (
    AROUND,
    ATTENTION_NORM,
    BEFORE_ATTENTION,
    BEFORE_MLP,
    KEY_NORM,
    LAST_NORM,
    MLP_NORM,
    QUERY_NORM,
    WORDS,
    EncoderFamily,
)

WHOLE, LOCAL = 1_000_000.0, 10_000.0  # bases of rotary frequencies
PERIOD = 6  # of so many layers the last sees the whole text
UNKNOWN = ("attention_bias", "attn_logit_softcapping")


def words(values: Words) -> Words:
    """Return which layers see a window, the rotary bases of both kinds, and the scales."""
    for key in UNKNOWN:
        if values.get(key):
            raise _fault(f"{key} is {short(values[key])}")
    numbers: list[Any] = [values.get("num_hidden_layers"), values.get("hidden_size")]
    numbers.append(values.get("sliding_window_pattern", PERIOD))
    numbers.append(values.get("query_pre_attn_scalar", 256))
    if not all(type(each) is int and 0 < each <= MAX_CONTEXT for each in numbers):
        raise _fault("its sizes are no counts")
    layers, width, period, scalar = numbers
    types = values.get("layer_types") or [
        SLIDING if (number + 1) % period else FULL for number in range(layers)
    ]
    window = values.get("sliding_window", 4096)
    rope = values.get("rope_parameters")
    rope = rope if isinstance(rope, dict) else {}
    whole, local = rope.get(FULL) or {}, rope.get(SLIDING) or {}
    return {
        "layer_types": types,
        "reach": window // 2 if type(window) is int else window,
        "rope_parameters": {"rope_theta": values.get("rope_theta", WHOLE), **whole},
        "local_rope_parameters": {"rope_theta": values.get("rope_local_base_freq", LOCAL), **local},
        "embedding_scale": width**0.5,
        "score_scale": scalar**-0.5,
    }


def gguf_words(keys: GgufKeys) -> Words:
    """Return the same of a file's keys."""
    heads = keys.integer("attention.head_count", 1, MAX_HEADS)
    head_dim = keys.integer("attention.key_length", 1, MAX_HEAD_DIM)
    return {
        "use_bidirectional_attention": True,
        "head_dim": head_dim,
        "query_pre_attn_scalar": head_dim,
        "num_key_value_heads": keys.integer("attention.head_count_kv", 1, heads),
        "rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon", 1e-13, 1e-1),
        "sliding_window": keys.integer("attention.sliding_window", 1, MAX_CONTEXT),
        "sliding_window_pattern": keys.integer(
            "attention.sliding_window_pattern", 1, MAX_LAYERS, default=PERIOD
        ),
        "rope_theta": keys.number("rope.freq_base", *THETAS, default=WHOLE),
        "rope_local_base_freq": keys.number("rope.freq_base_swa", *THETAS, default=LOCAL),
    }


def _fault(text: str) -> ModelError:
    return ModelError(f"config.json: {text}, which is not supported", "get another model")


FAMILY = EncoderFamily(
    "gemma3_text",
    "EmbeddingGemma",
    "layers",
    {BEFORE_MLP: "pre_feedforward_layernorm", MLP_NORM: "post_feedforward_layernorm"},
    {"hidden_act": "hidden_activation", "layer_norm_eps": "rms_norm_eps"},
    whole={WORDS.removesuffix(".weight"): "embed_tokens"},
    has_types=False,
    is_turned=True,
    is_gated=True,
    has_biases=False,
    has_embedding_norm=False,
    act="gelu_pytorch_tanh",
    norms=AROUND,
    is_rms=True,
    norm_biases=False,
    norms_from_one=True,
    qk_norms=True,
    words=words,
    gguf_words=gguf_words,
    gguf_parts={
        BEFORE_ATTENTION: "attn_norm",
        ATTENTION_NORM: "post_attention_norm",
        BEFORE_MLP: "ffn_norm",
        MLP_NORM: "post_ffw_norm",
        QUERY_NORM: "attn_q_norm",
        KEY_NORM: "attn_k_norm",
        LAST_NORM: "output_norm",
    },
)
