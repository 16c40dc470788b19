"""Small random checkpoints, saved by transformers as people save theirs."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from tests.tokens.toy import END, VOCABULARY, toy_tokenizer

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
LINEAR_ROPE = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}

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
}


def make_model(family: str, sizes: dict[str, int] | None = None) -> PreTrainedModel:
    """Random weights that matter: norms and biases differ from 1 and 0, too."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(**{**SIZES, **FAMILIES[family], **(sizes or {})})
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.2)
            else:
                parameter.normal_(0, 0.08)
    return model


def save_checkpoint(
    folder: Path, family: str, sizes: dict[str, int] | None = None, **save_options: Any
) -> PreTrainedModel:
    model = make_model(family, sizes)
    model.save_pretrained(folder, **save_options)
    save_tokenizer(folder)
    return model


def save_tokenizer(folder: Path) -> None:
    """The toy's, with a chat template."""
    fast = PreTrainedTokenizerFast(tokenizer_object=toy_tokenizer(), eos_token=END)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
