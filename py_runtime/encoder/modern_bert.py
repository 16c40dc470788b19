"""ModernBERT: norms ahead, rotary positions, and layers that see a text or a window of it."""

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.limits import MAX_CONTEXT, MAX_LAYERS, THETAS
from py_runtime.decoder.words import FULL, SLIDING, Words
from py_runtime.encoder.family import (
    BEFORE,
    BEFORE_ATTENTION,
    BEFORE_MLP,
    DOWN,
    EMBEDDING_NORM,
    GATE,
    KEYS,
    LAST_NORM,
    MIXED,
    QUERIES,
    UP,
    VALUES,
    WORDS,
    EncoderFamily,
)

WHOLE, LOCAL = 160_000.0, 10_000.0  # bases of rotary frequencies
WINDOW, PERIOD = 128, 3  # of so many layers the first sees the whole text
UNKNOWN = ("attention_bias", "mlp_bias", "norm_bias")


def words(values: Words) -> Words:
    """Return which layers see a window, and the rotary bases of both kinds."""
    for key in UNKNOWN:
        if values.get(key):
            raise _fault(f"{key} is {short(values[key])}")
    layers, period = values.get("num_hidden_layers"), values.get("global_attn_every_n_layers")
    period = PERIOD if period is None else period
    for found in (layers, period):
        if type(found) is not int or not 0 < found <= MAX_LAYERS:
            raise _fault(f"{short(layers)} layers, of which one in {short(period)} sees all")
    assert isinstance(layers, int), "it was checked"
    types = values.get("layer_types") or [
        SLIDING if number % period else FULL for number in range(layers)
    ]
    window = values.get("local_attention", WINDOW)
    reach = window // 2 if type(window) is int else window
    rope = values.get("rope_parameters")
    rope = rope if isinstance(rope, dict) else {}
    whole, local = rope.get(FULL) or {}, rope.get(SLIDING) or {}
    return {
        "layer_types": types,
        "reach": reach,
        "rope_parameters": {"rope_theta": values.get("global_rope_theta", WHOLE), **whole},
        "local_rope_parameters": {"rope_theta": values.get("local_rope_theta", LOCAL), **local},
    }


def gguf_words(keys: GgufKeys) -> Words:
    """Return the same of a file's keys, which may leave out what is usual."""
    return {
        "norm_eps": keys.number("attention.layer_norm_epsilon", 1e-13, 1e-1),
        "local_attention": keys.integer("attention.sliding_window", 1, MAX_CONTEXT),
        "global_attn_every_n_layers": keys.integer(
            "attention.sliding_window_pattern", 1, MAX_LAYERS, default=PERIOD
        ),
        "global_rope_theta": keys.number("rope.freq_base", *THETAS, default=WHOLE),
        "local_rope_theta": keys.number("rope.freq_base_swa", *THETAS, default=LOCAL),
    }


def _fault(text: str) -> ModelError:
    return ModelError(f"config.json: {text}, which is not supported", "get another model")


FAMILY = EncoderFamily(
    "modernbert",
    "ModernBERT, GTE, Granite Embedding R2",
    "layers",
    {
        BEFORE_ATTENTION: "attn_norm",
        **{part: f"attn.Wqkv, {part}" for part in (QUERIES, KEYS, VALUES)},
        MIXED: "attn.Wo",
        BEFORE_MLP: "mlp_norm",
        **{part: f"mlp.Wi, {part}" for part in (GATE, UP)},
        DOWN: "mlp.Wo",
    },
    {"hidden_act": "hidden_activation", "layer_norm_eps": "norm_eps"},
    embedding_norm="embeddings.norm",
    whole={WORDS.removesuffix(".weight"): "embeddings.tok_embeddings", LAST_NORM: "final_norm"},
    fused="attn.Wqkv",
    fused_mlp="mlp.Wi",
    has_types=False,
    is_turned=True,
    is_gated=True,
    has_biases=False,
    norms=BEFORE,
    first_is_bare=True,
    norm_biases=False,
    words=words,
    gguf_words=gguf_words,
    gguf_parts={
        EMBEDDING_NORM: "token_embd_norm",
        BEFORE_ATTENTION: "attn_norm",
        BEFORE_MLP: "ffn_norm",
    },
)
