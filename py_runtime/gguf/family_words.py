"""What sets an architecture apart, from a GGUF file's keys into the words of a config.json.

Files leave out what llama.cpp knows by the architecture's name: periods, windows, scales.
"""

from math import sqrt
from typing import Any

from py_runtime.decoder.config_json import FULL, SLIDING, TILED
from py_runtime.decoder.limits import (
    MAX_CONTEXT,
    MAX_EXPERTS,
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_KEYS,
    MAX_PER_LAYER,
    MAX_TAPS,
    MAX_USED,
)
from py_runtime.gguf.keys import Keys
from py_runtime.gguf.rope_keys import SCALES, THETAS, read_rope

Words = dict[str, Any]
SIGMOID_GATING = 2  # of experts, as llama.cpp counts them

WINDOW = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"
WITH_FACTOR_TENSORS = ("phi3", "minicpm")  # whose factors for frequencies are tensors
MULTIPLIERS = {
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
    "attention.scale": "attention_multiplier",
}
CAPS = {
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
}
# Keys that other architectures are refused for.
COMPUTED = {
    "granite": tuple(MULTIPLIERS),
    "granitemoe": (*MULTIPLIERS, "expert_count"),
    "minicpm": tuple(MULTIPLIERS),
    "gemma2": tuple(CAPS),
    "gemma4": ("final_logit_softcapping",),
    "qwen3moe": ("expert_count",),
    "lfm2moe": ("expert_count",),
    "gpt-oss": ("expert_count",),
}
# Of these, one size has heads whose scores have a scale of their own; files do not say so.
LAYERS_OF_27B = {"gemma2": 46, "gemma3": 62}


def family_words(keys: Keys, values: Words) -> Words:
    """All that depends on the architecture; `values` has the sizes."""
    architecture = keys.architecture
    words = {"rope_parameters": read_rope(keys, architecture in WITH_FACTOR_TENSORS)}
    if architecture in OF_AN_ARCHITECTURE:
        return words | OF_AN_ARCHITECTURE[architecture](keys, values, words["rope_parameters"])
    # Full attention stands in for a window that the file may or may not mean: as far as it goes.
    window = _window(keys, 0) or MAX_CONTEXT
    longest = values["max_position_embeddings"]
    return words | {"max_position_embeddings": min(longest, window)}


def _window(keys: Keys, default: int) -> int:
    return keys.integer(WINDOW, 0, MAX_CONTEXT, default=default)


def _everywhere(keys: Keys, values: Words, rope: Words) -> Words:
    window = _window(keys, 0)
    return {"sliding_window": window} if window else {}


def _layer_types(keys: Keys, values: Words, period: int) -> list[str]:
    slides = keys.pattern(PATTERN, values["num_hidden_layers"], period)
    return [SLIDING if each else FULL for each in slides]


def _smollm3(keys: Keys, values: Words, rope: Words) -> Words:
    layers = values["num_hidden_layers"]
    return {"no_rope_layers": [int((number + 1) % 4 != 0) for number in range(layers)]}


def _granite(keys: Keys, values: Words, rope: Words) -> Words:
    words: Words = {"attention_multiplier": values["head_dim"] ** -0.5}
    words |= {name: keys.number(key, *SCALES) for key, name in MULTIPLIERS.items() if key in keys}
    if not keys.flag("rope.scaling.finetuned", True):
        words["position_embedding_type"] = None
    return words


def _granitemoe(keys: Keys, values: Words, rope: Words) -> Words:
    """Experts are as wide as MLPs elsewhere; one may be beside them. Files of models without any
    may have this name, too."""
    words = _granite(keys, values, rope)
    if not keys.integer("expert_count", 0, MAX_EXPERTS, default=0):
        return words | {"model_type": "granite"}
    words |= _routing(keys)
    shared = keys.integer("expert_shared_feed_forward_length", 0, MAX_HIDDEN, default=0)
    if not shared:
        return words
    return words | {"model_type": "granitemoeshared", "shared_intermediate_size": shared}


def _minicpm(keys: Keys, values: Words, rope: Words) -> Words:
    """Old files have none of the scales."""
    defaults = {
        "embedding_multiplier": 12.0,
        "residual_multiplier": 1.4 / sqrt(values["num_hidden_layers"]),
        "logits_scaling": values["hidden_size"] / 256,
    }
    return defaults | _granite(keys, values, rope)


def _ministral3(keys: Keys, values: Words, rope: Words) -> Words:
    key = "attention.temperature_scale"
    if key in keys and rope["rope_type"] == "yarn":
        rope["llama_4_scaling_beta"] = keys.number(key, 0.0, 1.0)
    return _everywhere(keys, values, rope)


def _exaone4(keys: Keys, values: Words, rope: Words) -> Words:
    window = _window(keys, 0)
    if not window:
        return {"sliding_window": None, "layer_types": [FULL] * values["num_hidden_layers"]}
    return {"sliding_window": window, "layer_types": _layer_types(keys, values, 4)}


def _olmo(keys: Keys, values: Words, rope: Words) -> Words:
    """With a window it is OLMo 3, whose positions are stretched in full layers alone."""
    window = _window(keys, 0)
    if not window:
        return {}
    plain = {"rope_type": "default", "rope_theta": rope["rope_theta"]}
    return {
        "model_type": "olmo3",
        "sliding_window": window,
        "layer_types": _layer_types(keys, values, 4),
        "rope_parameters": {FULL: rope, SLIDING: plain},
    }


def _lfm2(keys: Keys, values: Words, rope: Words) -> Words:
    """Layers without heads for keys and values convolve."""
    layers, most = values["num_hidden_layers"], values["num_attention_heads"]
    kv_heads = keys.integers(
        "attention.head_count_kv", layers, 0, most, values["num_key_value_heads"]
    )
    return {
        "layer_types": [FULL if heads else "conv" for heads in kv_heads],
        "conv_L_cache": keys.integer("shortconv.l_cache", 2, MAX_TAPS),
        "block_auto_adjust_ff_dim": False,  # the width that the file says is the one it has
    }


def _qwen35(keys: Keys, values: Words, rope: Words) -> Words:
    """All layers but each fourth are delta nets; their value heads lie tiled."""
    layers = values["num_hidden_layers"]
    period = keys.integer("full_attention_interval", 1, 1 << 10, default=4)
    value_heads = keys.integer("ssm.time_step_rank", 1, MAX_HEADS)
    inner = keys.integer("ssm.inner_size", value_heads, MAX_HEADS * MAX_HEADS)
    if inner % value_heads:
        raise keys.fault("ssm.inner_size", f"is {inner}, not whole for {value_heads} heads")
    return {
        "layer_types": [
            FULL if (number + 1) % period == 0 else "linear_attention" for number in range(layers)
        ],
        "linear_conv_kernel_dim": keys.integer("ssm.conv_kernel", 2, MAX_TAPS),
        "linear_num_key_heads": keys.integer("ssm.group_count", 1, MAX_HEADS),
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": keys.integer("ssm.state_size", 1, MAX_KEYS),
        "linear_value_head_dim": inner // value_heads,
        TILED: True,
    }


def _lfm2moe(keys: Keys, values: Words, rope: Words) -> Words:
    """Scores are sigmoids; whether shares add up to 1 goes without saying."""
    layers = values["num_hidden_layers"]
    gating = keys.integer("expert_gating_func", 0, 1 << 10, default=SIGMOID_GATING)
    if gating != SIGMOID_GATING:
        raise keys.unsupported("expert_gating_func", f"is {gating}")
    return {
        **_lfm2(keys, values, rope),
        **_qwen3moe(keys, values, rope),
        "num_dense_layers": keys.integer("leading_dense_block_count", 0, layers, default=0),
        "routed_scaling_factor": keys.number("expert_weights_scale", *SCALES, default=1.0),
    }


def _gpt_oss(keys: Keys, values: Words, rope: Words) -> Words:
    """Every other layer slides, the first one too; yarn's bounds are not rounded."""
    rope["truncate"] = False
    return {
        **_qwen3moe(keys, values, rope),
        "sliding_window": _window(keys, 128),
        "layer_types": _layer_types(keys, values, 2),
    }


def _qwen3moe(keys: Keys, values: Words, rope: Words) -> Words:
    hidden = keys.integer("expert_feed_forward_length", 1, MAX_HIDDEN)
    return {**_routing(keys), "moe_intermediate_size": hidden}


def _routing(keys: Keys) -> Words:
    """Files do not say that the shares of those used add up to 1."""
    experts = keys.integer("expert_count", 1, MAX_EXPERTS)
    return {
        "num_local_experts": experts,
        "num_experts_per_tok": keys.integer("expert_used_count", 1, min(experts, MAX_USED)),
        "norm_topk_prob": True,
    }


def _gemma2(keys: Keys, values: Words, rope: Words) -> Words:
    caps = {key: keys.number(key, *SCALES, default=usual) for key, usual in CAPS.items()}
    return {
        **caps,
        "query_pre_attn_scalar": _query_scalar(keys, values),
        "sliding_window": _window(keys, 4096),
        "layer_types": _layer_types(keys, values, 2),
        "hidden_activation": values["hidden_act"],
    }


def _gemma3(keys: Keys, values: Words, rope: Words) -> Words:
    theta = keys.number("rope.freq_base_swa", *THETAS, default=10000.0)
    rope["rope_theta"] = keys.number("rope.freq_base", *THETAS, default=1000000.0)
    return {
        "query_pre_attn_scalar": _query_scalar(keys, values),
        "sliding_window": _window(keys, 1024),
        "layer_types": _layer_types(keys, values, 6),
        "rope_parameters": {FULL: rope, SLIDING: {"rope_type": "default", "rope_theta": theta}},
        "hidden_activation": values["hidden_act"],
        "final_logit_softcapping": None,
    }


def _gemma4(keys: Keys, values: Words, rope: Words) -> Words:
    """Heads of full layers have a width of their own; factors in a tensor stop some of their
    pairs."""
    layers, hidden, width = (
        values[name] for name in ("num_hidden_layers", "intermediate_size", "head_dim")
    )
    local = {
        keys.integer(f"attention.{part}_length_swa", 2, MAX_HEAD_DIM, default=width)
        for part in ("key", "value")
    }
    if len(local) > 1:
        raise keys.unsupported("attention.value_length_swa", "differs from the keys' width")
    sharing = keys.integer("attention.shared_kv_layers", 0, layers - 1, default=0)
    hiddens = keys.integers("feed_forward_length", layers, 1, MAX_HIDDEN)
    doubled = hiddens[-1] == 2 * hidden
    widths = [hidden] * (layers - sharing) + [hidden * (1 + doubled)] * sharing
    if hiddens != widths:
        raise keys.unsupported("feed_forward_length", "differs from layer to layer")
    theta = keys.number("rope.freq_base_swa", *THETAS, default=10000.0)
    rope["rope_theta"] = keys.number("rope.freq_base", *THETAS, default=1000000.0)
    head_dim = local.pop()
    turned = keys.integer("rope.dimension_count_swa", 2, MAX_HEAD_DIM, default=head_dim)
    if turned != head_dim:
        raise keys.unsupported("rope.dimension_count_swa", f"differs from the heads' {head_dim}")
    return {
        "head_dim": head_dim,
        "global_head_dim": width,
        "num_kv_shared_layers": sharing,
        "use_double_wide_mlp": doubled,
        "vocab_size_per_layer_input": values["vocab_size"],
        "hidden_size_per_layer_input": keys.integer(
            "embedding_length_per_layer_input", 0, MAX_PER_LAYER, default=0
        ),
        "sliding_window": _window(keys, 512),
        "layer_types": _layer_types(keys, values, 5),
        "rope_parameters": {FULL: rope, SLIDING: {"rope_type": "default", "rope_theta": theta}},
        "hidden_activation": values["hidden_act"],
        "final_logit_softcapping": keys.number(
            "final_logit_softcapping", *SCALES, default=CAPS["final_logit_softcapping"]
        ),
    }


def _query_scalar(keys: Keys, values: Words) -> int:
    if values["num_hidden_layers"] == LAYERS_OF_27B[keys.architecture]:
        return int(values["hidden_size"] // values["num_attention_heads"])
    return int(values["head_dim"])


OF_AN_ARCHITECTURE = {
    "llama": _everywhere,
    "phi3": _everywhere,
    "mistral3": _ministral3,
    "smollm3": _smollm3,
    "granite": _granite,
    "granitemoe": _granitemoe,
    "minicpm": _minicpm,
    "exaone4": _exaone4,
    "olmo2": _olmo,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma4": _gemma4,
    "lfm2": _lfm2,
    "qwen35": _qwen35,
    "lfm2moe": _lfm2moe,
    "gpt-oss": _gpt_oss,
    "qwen3moe": _qwen3moe,
}
