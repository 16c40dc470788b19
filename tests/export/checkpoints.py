"""Small random checkpoints, saved by transformers as people save theirs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, dequantize, quantize
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

from tests.tokens.toy import END, VOCABULARY, toy_tokenizer

MXFP4 = GGMLQuantizationType.MXFP4
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
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
YARN_ROPE = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN_16 = YARN_ROPE | {
    "factor": 16.0,
    "original_max_position_embeddings": 256,
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


# name → the config beyond SIZES
FAMILIES: dict[str, dict[str, Any]] = {
    "llama 2": {"model_type": "llama"},
    "llama 3": {"model_type": "llama", "rope_parameters": LLAMA3_ROPE},
    "smollm2": {"model_type": "llama", "tie_word_embeddings": True},
    "llama with biases": {"model_type": "llama", "attention_bias": True, "mlp_bias": True},
    "tinyllama": {"model_type": "llama", "num_key_value_heads": 1},
    "linear rope": {"model_type": "llama", "rope_parameters": LINEAR_ROPE},
    "mistral": {"model_type": "mistral", "sliding_window": None},
    "qwen2.5": {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen2.5 yarn": {"model_type": "qwen2", "rope_parameters": YARN_ROPE},
    "qwen3": {"model_type": "qwen3", "head_dim": 24},
    # What sets these apart needs no kernels of its own.
    "phi-3.5": {
        "model_type": "phi3",
        "rope_parameters": LONG_ROPE | factors(8),
        "pad_token_id": None,
        **LONG_SIZES,
    },
    "phi-4-mini": {
        "model_type": "phi3",
        "rope_parameters": LONG_ROPE | factors(6) | {"partial_rotary_factor": 0.75},
        "tie_word_embeddings": True,
        "pad_token_id": None,
        **LONG_SIZES,
    },
    "smollm3": {"model_type": "smollm3", "num_hidden_layers": 5, "pad_token_id": None, **LONGER},
    "granite 3": {"model_type": "granite", "num_hidden_layers": 3, **MULTIPLIERS, **LONGER},
    "granite 4": {
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
    "minicpm": {"model_type": "granite", "num_hidden_layers": 3, **MINICPM, **LONGER},
    "olmo 2": {"model_type": "olmo2", "num_hidden_layers": 3, "hidden_size": 256, **LONGER},
    "ministral 3": {
        "model_type": "ministral3",
        "num_hidden_layers": 3,
        "head_dim": 24,
        "rope_parameters": YARN_16,
        "max_position_embeddings": 4096,
        "pad_token_id": None,
    },
    "gemma 1": {"model_type": "gemma", "num_key_value_heads": 1, "head_dim": 24, **LONGER},
    "qwen3-moe": {
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
        "model_type": "llama",
        "rope_parameters": LLAMA3_ROPE,
        "num_hidden_layers": 3,
        **LONGER,
    },
    "exaone 4": {
        "model_type": "exaone4",
        "rope_parameters": LLAMA3_ROPE,
        "num_hidden_layers": 3,
        "layer_types": ["full_attention"] * 3,
        "sliding_window": None,
        **LONGER,
    },
    "falcon3": {"model_type": "llama", "head_dim": 32, "num_hidden_layers": 3, **LONGER},
    # These carry a state on, which cannot be cut back.
    "lfm2": {
        "model_type": "lfm2",
        "num_hidden_layers": 5,
        "layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"],
        "block_multiple_of": 32,
        "pad_token_id": None,
        **LONGER,
    },
    "gpt-oss": {
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
        "model_type": "qwen3_5_text",
        "num_hidden_layers": 5,
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 24,
        **LONGER,
    },
    # These look back less far than they could, or have scores and logits under a cap.
    "mistral 0.1": {"model_type": "mistral", "num_hidden_layers": 3, **WINDOW, **LONGER},
    "phi-3 mini": {"model_type": "phi3", "pad_token_id": None, **WINDOW, **LONGER},
    "exaone 4 hybrid": {"model_type": "exaone4", "num_hidden_layers": 5, **WINDOW, **LONGER},
    "olmo 3": {
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


# Those that people have as the part that writes of a model that sees.
SEEING: dict[str, Any] = {
    "qwen3_vl_text": (Qwen3VLConfig, Qwen3VLForConditionalGeneration),
    "qwen3_5_text": (Qwen3_5Config, Qwen3_5ForConditionalGeneration),
}


def make_model(family: str, sizes: dict[str, int] | None = None) -> PreTrainedModel:
    """Random weights that matter: norms and biases differ from 1 and 0, too."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(**{**SIZES, **FAMILIES[family], **(sizes or {})})
    if config.model_type in SEEING:
        model = with_eyes(config)
    else:
        model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.2)
            elif name.endswith("sinks"):
                parameter.normal_(0, 1)
            elif name.endswith("A_log"):
                parameter.uniform_(-3, 1)
            elif "conv.conv" in name or "conv1d" in name:  # few numbers, and all hangs on them
                parameter.normal_(0, 0.5)
            else:
                parameter.normal_(0, 0.08)
            if ".experts." in name and config.model_type == "gpt_oss" and "bias" not in name:
                parameter.copy_(as_mxfp4(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("expert_bias"):
                buffer.normal_(0, 0.2)
            elif name.endswith("layer_scalar"):
                buffer.uniform_(0.5, 1.5)
    return model


def as_mxfp4(weights: torch.Tensor) -> torch.Tensor:
    """[experts, columns, rows] of values that such blocks of columns hold, as people have them."""
    rows_first = np.ascontiguousarray(weights.swapaxes(1, 2).numpy())
    held = dequantize(quantize(rows_first, MXFP4), MXFP4)
    return torch.from_numpy(held.reshape(rows_first.shape)).swapaxes(1, 2)


def save_checkpoint(
    folder: Path, family: str, sizes: dict[str, int] | None = None, **save_options: Any
) -> PreTrainedModel:
    model = make_model(family, sizes)
    model.save_pretrained(folder, **save_options)
    if family in OWN_CODE:
        OWN_CODE[family](folder)
    save_tokenizer(folder)
    return model


def with_eyes(text: PretrainedConfig) -> PreTrainedModel:
    """A model that sees, as small as can be, around this one."""
    vision: dict[str, Any] = {
        "depth": 1,
        "hidden_size": 16,
        "num_heads": 1,
        "intermediate_size": 16,
    }
    vision["out_hidden_size"] = text.hidden_size
    if text.model_type == "qwen3_vl_text":
        vision["deepstack_visual_indexes"] = [0]
    configuration, model = SEEING[text.model_type]
    return model(configuration(text_config=text.to_dict(), vision_config=vision)).eval()


# Checkpoints whose code does not come with transformers -------------------------------------------


def as_minicpm(folder: Path) -> None:
    def renamed(config: dict[str, Any]) -> dict[str, Any]:
        for key in MINICPM:
            del config[key]
        own = {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 16}
        return config | own | {"model_type": "minicpm"}

    rewrite_config(folder, renamed)


def as_exaone(folder: Path) -> None:
    keys = {"num_hidden_layers": "num_layers", "rms_norm_eps": "layer_norm_epsilon"}
    keys |= {"hidden_act": "activation_function"}
    rewrite_config(
        folder,
        lambda config: (
            {keys.get(key, key): value for key, value in config.items()} | {"model_type": "exaone"}
        ),
    )
    parts = {
        "model.embed_tokens": "transformer.wte",
        "model.norm": "transformer.ln_f",
        "model.layers.": "transformer.h.",
        "input_layernorm": "ln_1",
        "post_attention_layernorm": "ln_2",
        "self_attn.o_proj": "attn.attention.out_proj",
        "self_attn": "attn.attention",
        "gate_proj": "c_fc_0",
        "up_proj": "c_fc_1",
        "down_proj": "c_proj",
    }

    def renamed(name: str) -> str:
        for part, other in parts.items():
            name = name.replace(part, other)
        return name

    path = folder / "model.safetensors"
    save_file({renamed(name): tensor for name, tensor in load_file(path).items()}, path)


def rewrite_config(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


OWN_CODE = {"minicpm": as_minicpm, "exaone 3.5": as_exaone}


def save_tokenizer(folder: Path) -> None:
    """The toy's, with a chat template."""
    fast = PreTrainedTokenizerFast(tokenizer_object=toy_tokenizer(), eos_token=END)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
