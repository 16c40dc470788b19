"""Configs of small models, one or more for each family: a row here is compared by all its tests."""

from typing import Any

from tests.tokens.toy import VOCABULARY

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 128,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN_ROPE: dict[str, Any] = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN_64 = YARN_ROPE | {
    "factor": 64.0,
    "original_max_position_embeddings": 64,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
LONG_ROPE = {"rope_type": "longrope", "rope_theta": 10000.0}
LONG_SIZES = {"max_position_embeddings": 8192, "original_max_position_embeddings": 4096}
LINEAR_ROPE = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}

FULL, SLIDES = "full_attention", "sliding_attention"
LONGER = {"max_position_embeddings": 256}
WINDOW = {"sliding_window": 24}
MULTIPLIERS = {
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.22,
    "logits_scaling": 8.0,
    "attention_multiplier": 0.1,
}
# As MiniCPM's own code computes; its config.json has other words for it (see OWN_CODE).
MINICPM = {
    "embedding_multiplier": 12.0,
    "residual_multiplier": 1.4 / 3**0.5,
    "logits_scaling": 4.0,
    "attention_multiplier": 0.25,
}


def factors(pairs: int) -> dict[str, list[float]]:
    return {
        "short_factor": [1 + 0.1 * pair for pair in range(pairs)],
        "long_factor": [2.0 + pair for pair in range(pairs)],
    }


# name → the config beyond SIZES, and the architecture that its GGUF file has, where one is compared
ROWS: dict[str, dict[str, Any]] = {
    "llama 2": {"gguf": "llama", "model_type": "llama"},
    "llama 3": {"gguf": "llama", "model_type": "llama", "rope_parameters": LLAMA3_ROPE, **LONGER},
    "smollm2": {"gguf": "llama", "model_type": "llama", "tie_word_embeddings": True, **LONGER},
    "llama with biases": {"model_type": "llama", "attention_bias": True, "mlp_bias": True},
    "tinyllama": {"model_type": "llama", "num_key_value_heads": 1},
    "linear rope": {"model_type": "llama", "rope_parameters": LINEAR_ROPE},
    "mistral": {"gguf": "llama", "model_type": "mistral", "sliding_window": None},
    "qwen2.5": {"gguf": "qwen2", "model_type": "qwen2", "tie_word_embeddings": True},
    "qwen2.5 yarn": {
        "gguf": "qwen2",
        "model_type": "qwen2",
        "rope_parameters": YARN_ROPE,
        **LONGER,
    },
    "qwen3": {"gguf": "qwen3", "model_type": "qwen3", "head_dim": 24},
    # What sets these apart needs no kernels of its own.
    "phi-3.5": {
        "gguf": "phi3",
        "model_type": "phi3",
        "rope_parameters": LONG_ROPE | factors(8),
        "pad_token_id": None,
        **LONG_SIZES,
    },
    "phi-4-mini": {
        "gguf": "phi3",
        "model_type": "phi3",
        "rope_parameters": LONG_ROPE | factors(6) | {"partial_rotary_factor": 0.75},
        "tie_word_embeddings": True,
        "pad_token_id": None,
        **LONG_SIZES,
    },
    "smollm3": {
        "gguf": "smollm3",
        "model_type": "smollm3",
        "num_hidden_layers": 5,
        "pad_token_id": None,
        **LONGER,
    },
    "granite 3": {
        "gguf": "granite",
        "model_type": "granite",
        "num_hidden_layers": 3,
        **MULTIPLIERS,
        **LONGER,
    },
    "granite 4": {
        "gguf": "granite",
        "model_type": "granitemoehybrid",
        "num_hidden_layers": 3,
        "layer_types": ["full_attention"] * 3,
        "num_local_experts": 0,
        "shared_intermediate_size": 160,
        "position_embedding_type": "rope",
        "tie_word_embeddings": True,
        **MULTIPLIERS,
        **LONGER,
    },
    "granite 3 moe": {
        "gguf": "granitemoe",
        "model_type": "granitemoe",
        "num_hidden_layers": 3,
        "head_dim": 24,
        "num_local_experts": 7,
        "num_experts_per_tok": 3,
        "intermediate_size": 44,
        **MULTIPLIERS,
        "logits_scaling": 0.25,  # so that there is a clear next token
        **LONGER,
    },
    "granite shared moe": {
        "gguf": "granitemoe",
        "model_type": "granitemoeshared",
        "num_hidden_layers": 3,
        "head_dim": 24,
        "num_local_experts": 9,
        "num_experts_per_tok": 4,
        "intermediate_size": 44,
        "shared_intermediate_size": 72,
        **MULTIPLIERS,
        "logits_scaling": 0.25,  # so that there is a clear next token
        **LONGER,
    },
    "granite 4 moe": {
        "gguf": "granitemoe",
        "model_type": "granitemoehybrid",
        "num_hidden_layers": 3,
        "layer_types": ["full_attention"] * 3,
        "num_local_experts": 6,
        "num_experts_per_tok": 2,
        "intermediate_size": 44,
        "shared_intermediate_size": 72,
        "position_embedding_type": None,
        "tie_word_embeddings": True,
        **MULTIPLIERS,
        **LONGER,
    },
    "minicpm": {
        "gguf": "minicpm",
        "model_type": "granite",
        "num_hidden_layers": 3,
        **MINICPM,
        **LONGER,
    },
    "olmo 2": {
        "gguf": "olmo2",
        "model_type": "olmo2",
        "num_hidden_layers": 3,
        "hidden_size": 256,
        **LONGER,
    },
    "ministral 3": {
        "gguf": "mistral3",
        "model_type": "ministral3",
        "num_hidden_layers": 3,
        "head_dim": 24,
        "rope_parameters": YARN_64,
        "max_position_embeddings": 4096,
        "pad_token_id": None,
    },
    "gemma 1": {
        "gguf": "gemma",
        "model_type": "gemma",
        "num_key_value_heads": 1,
        "head_dim": 24,
        **LONGER,
    },
    "qwen3-moe": {
        "gguf": "qwen3moe",
        "model_type": "qwen3_moe",
        "head_dim": 24,
        "num_hidden_layers": 3,
        "num_experts": 7,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 44,
        "norm_topk_prob": True,
        **LONGER,
    },
    "qwen3-vl": {
        "gguf": "qwen3vl",
        "model_type": "qwen3_vl_text",
        "head_dim": 24,
        "num_hidden_layers": 3,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e6,
            "mrope_section": [4, 4, 4],
            "mrope_interleaved": True,
        },
        **LONGER,
    },
    "exaone 3.5": {
        "gguf": "exaone",
        "model_type": "llama",
        "rope_parameters": LLAMA3_ROPE,
        "num_hidden_layers": 3,
        **LONGER,
    },
    "exaone 4": {
        "gguf": "exaone4",
        "model_type": "exaone4",
        "rope_parameters": LLAMA3_ROPE,
        "num_hidden_layers": 3,
        "layer_types": ["full_attention"] * 3,
        "sliding_window": None,
        **LONGER,
    },
    "falcon3": {
        "gguf": "llama",
        "model_type": "llama",
        "head_dim": 32,
        "num_hidden_layers": 3,
        **LONGER,
    },
    # These carry a state on, which cannot be cut back.
    "lfm2": {
        "gguf": "lfm2",
        "model_type": "lfm2",
        "num_hidden_layers": 5,
        "layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"],
        "block_multiple_of": 32,
        "pad_token_id": None,
        **LONGER,
    },
    "gpt-oss": {
        "gguf": "gpt-oss",
        "model_type": "gpt_oss",
        "num_hidden_layers": 3,
        "head_dim": 24,
        "num_local_experts": 7,
        "num_experts_per_tok": 3,
        "intermediate_size": 96,
        "sliding_window": 24,
        "max_position_embeddings": 256,
        "rope_parameters": YARN_ROPE | {"rope_theta": 150000.0, "truncate": False},
        "pad_token_id": None,
    },
    "lfm2-moe": {
        "gguf": "lfm2moe",
        "model_type": "lfm2_moe",
        "num_hidden_layers": 5,
        "layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"],
        "num_dense_layers": 2,
        "num_experts": 9,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 44,
        "routed_scaling_factor": 1.25,
        "pad_token_id": None,
        **LONGER,
    },
    "qwen3.5": {
        "gguf": "qwen35",
        "model_type": "qwen3_5_text",
        "num_hidden_layers": 5,
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 24,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
        },
        **LONGER,
    },
    # These look back less far than they could, or have scores and logits under a cap.
    "mistral 0.1": {
        "gguf": "llama",
        "model_type": "mistral",
        "num_hidden_layers": 3,
        **WINDOW,
        **LONGER,
    },
    "phi-3 mini": {"gguf": "phi3", "model_type": "phi3", "pad_token_id": None, **WINDOW, **LONGER},
    "exaone 4 hybrid": {
        "gguf": "exaone4",
        "model_type": "exaone4",
        "num_hidden_layers": 5,
        **WINDOW,
        **LONGER,
    },
    "olmo 3": {
        "gguf": "olmo2",
        "model_type": "olmo3",
        "num_hidden_layers": 5,
        "rope_parameters": {
            "full_attention": YARN_ROPE | {"attention_factor": 1.1},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
        **WINDOW,
        **LONGER,
    },
    "gemma 2": {
        "gguf": "gemma2",
        "model_type": "gemma2",
        "num_hidden_layers": 3,
        "head_dim": 24,
        "query_pre_attn_scalar": 24,
        "attn_logit_softcapping": 4.0,
        "final_logit_softcapping": 3.0,
        **WINDOW,
        **LONGER,
    },
    "gemma 3": {
        "gguf": "gemma3",
        "model_type": "gemma3_text",
        "num_hidden_layers": 7,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "query_pre_attn_scalar": 32,
        "rope_parameters": {
            "full_attention": LINEAR_ROPE | {"rope_theta": 1e6, "factor": 8.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
        **WINDOW,
        **LONGER,
    },
    "gemma 4": {
        "gguf": "gemma4",
        "model_type": "gemma4_text",
        "num_hidden_layers": 9,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "global_head_dim": 40,
        "num_kv_shared_layers": 4,
        "use_double_wide_mlp": True,
        "hidden_size_per_layer_input": 12,
        "vocab_size_per_layer_input": VOCABULARY,
        "final_logit_softcapping": 3.0,
        "layer_types": [*(SLIDES, FULL, SLIDES) * 2, SLIDES, FULL, FULL],
        "pad_token_id": None,
        **WINDOW,
        **LONGER,
    },
}
FAMILIES: dict[str, dict[str, Any]] = {
    name: {key: value for key, value in row.items() if key != "gguf"} for name, row in ROWS.items()
}
