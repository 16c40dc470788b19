"""What a Hugging Face config says, as the one decoder's config, and its rotary tables."""

from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, PretrainedConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from export.decoder import DecoderConfig
from export.errors import ExportError
from py_runtime.folder.strict_json import short

ARCHITECTURES = ("llama", "mistral", "qwen2", "qwen3")
# The other types change the table with the length of the text, which one fixed table cannot.
ROPE_TYPES = ("default", "linear", "llama3", "yarn")
DEFAULT_CONTEXT = 2048  # the KV cache of a full context would not fit most users' GPUs
MAX_CHUNK = 512  # tokens in one call: longer prompts go in chunks, which keeps buffers small


MIN_CONTEXT = 2  # a token, and one that follows it
# The largest that a config may claim: beyond them nothing fits a page, or a table of it a computer.
COUNTS = {
    "vocab_size": 1 << 22,
    "hidden_size": 1 << 16,
    "intermediate_size": 1 << 18,
    "num_hidden_layers": 1 << 10,
    "num_attention_heads": 1 << 12,
    "num_key_value_heads": 1 << 12,
    "head_dim": 1 << 12,
    "max_position_embeddings": 1 << 30,
}
NUMBERS = ("rms_norm_eps", "rope_theta")
MAX_NUMBER = 1e30  # of these


def read_config(values: dict[str, Any]) -> PretrainedConfig:
    """A config.json as transformers reads it; refuses what the decoder cannot be."""
    architecture = values.get("model_type")
    if architecture not in ARCHITECTURES:
        raise ExportError(
            f"the architecture '{architecture}' is not supported; these are: "
            f"{', '.join(ARCHITECTURES)} (Llama, SmolLM2, TinyLlama, Mistral, Qwen2.5, Qwen3)"
        )
    if values.get("quantization_config"):
        raise ExportError("this checkpoint is quantised already; give the float one, or a GGUF")
    _check_values(values)
    try:
        config = AutoConfig.for_model(**values)
    except Exception as error:  # transformers validates with many kinds of its own
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ExportError(f"config.json cannot be read: {reason}") from None
    if config.hidden_act != "silu":
        raise ExportError(f"the activation '{config.hidden_act}' is not supported, only silu")
    rope_type = config.rope_parameters["rope_type"]
    if rope_type not in ROPE_TYPES:
        raise ExportError(
            f"the rope type '{rope_type}' is not supported; these are: {', '.join(ROPE_TYPES)}"
        )
    return config


def _check_values(values: dict[str, Any]) -> None:
    for name, most in COUNTS.items():
        value = values.get(name)
        if value is None:  # transformers has a default for it
            continue
        if type(value) is not int or not 1 <= value <= most:
            raise ExportError(f"{name} must be an integer from 1 to {most}, got {short(value)}")
    rope = values.get("rope_parameters") or values.get("rope_scaling")
    for given in (values, rope if isinstance(rope, dict) else {}):
        for name in NUMBERS:
            value = given.get(name)
            if value is None:
                continue
            if not isinstance(value, int | float) or not 0 < value <= MAX_NUMBER:
                raise ExportError(f"{name} must be a number above 0, got {short(value)}")


def decoder_config(config: PretrainedConfig, context: int | None) -> DecoderConfig:
    """`context` positions, at most what the model was made for; when None, what most pages hold."""
    longest = _longest_context(config)
    chosen = min(longest, DEFAULT_CONTEXT) if context is None else context
    if not MIN_CONTEXT <= chosen <= longest:
        raise ExportError(
            f"--max-seq-len {chosen} is outside {MIN_CONTEXT} to {longest} of this model"
        )
    is_qwen2 = config.model_type == "qwen2"
    attention_bias = bool(getattr(config, "attention_bias", False))
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if head_dim < 2 or head_dim % 2:
        raise ExportError(f"heads are {head_dim} wide; rotary positions need an even width")
    return DecoderConfig(
        vocabulary=config.vocab_size,
        width=config.hidden_size,
        hidden=config.intermediate_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=head_dim,
        context=chosen,
        max_chunk=min(chosen, MAX_CHUNK),
        eps=config.rms_norm_eps,
        rotary=head_dim,
        qkv_bias=is_qwen2 or attention_bias,
        o_bias=attention_bias and not is_qwen2,
        mlp_bias=bool(getattr(config, "mlp_bias", False)),
        qk_norm=config.model_type == "qwen3",
        tied=bool(config.tie_word_embeddings),
    )


def _longest_context(config: PretrainedConfig) -> int:
    """Attention here is full, so a model with a sliding window goes as far as its window."""
    window = getattr(config, "sliding_window", None)
    uses_window = getattr(config, "use_sliding_window", True)
    longest: int = config.max_position_embeddings
    return min(longest, window) if window and uses_window else longest


def rotary_tables(config: PretrainedConfig, context: int) -> tuple[Tensor, Tensor]:
    """cos and sin, [context, head_dim], scaled as the config says."""
    try:
        with torch.no_grad():
            rotary = LlamaRotaryEmbedding(config)  # serves them all
            cos, sin = rotary(torch.zeros(1), torch.arange(context)[None])
    except Exception as error:  # as above: what a rope type needs, transformers alone knows
        raise ExportError(f"rotary positions cannot be computed: {error}") from None
    if not (cos.isfinite() & sin.isfinite()).all():
        raise ExportError("rotary positions are not finite: the config's rope parameters are wrong")
    return cos[0].contiguous(), sin[0].contiguous()
