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

from tests.export.family_configs import FAMILIES, MINICPM, SIZES
from tests.tokens.toy import END, toy_tokenizer

MXFP4 = GGMLQuantizationType.MXFP4
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# Those that people have as the part that writes of a model that sees.
SEEING: dict[str, Any] = {
    "qwen3_vl_text": (Qwen3VLConfig, Qwen3VLForConditionalGeneration),
    "qwen3_5_text": (Qwen3_5Config, Qwen3_5ForConditionalGeneration),
}


def make_model(family: str, sizes: dict[str, Any] | None = None) -> PreTrainedModel:
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
            elif name.endswith("sinks") or name.endswith(".D"):
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
    """Make a model that sees, as small as can be, around this one."""
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
    """Save the toy's tokenizer, with a chat template."""
    fast = PreTrainedTokenizerFast(tokenizer_object=toy_tokenizer(), eos_token=END)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
