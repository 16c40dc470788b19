"""Families of models: one row each. The exporter and the reader of GGUF files go by this table.

What a model says of itself comes in the words of a Hugging Face config.json, whole: sizes, biases,
`rope_parameters`. The GGUF reader writes the same from metadata.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py_runtime.base.model_errors import ModelError
from py_runtime.decoder.config import DecoderConfig

DEFAULT_CONTEXT = 2048  # the KV cache of a full context would not fit most users' GPUs
MIN_CONTEXT = 2  # a token, and one that follows it
MAX_CHUNK = 512  # tokens in one call: longer prompts go in chunks, which keeps buffers small
ACTIVATION = "silu"
# The other types change the table with the length of the text, which one fixed table cannot.
ROPE_TYPES = ("default", "linear", "llama3", "yarn")


@dataclass(frozen=True)
class Family:
    """What sets it apart from Llama, and what it is called."""

    model_type: str  # in config.json
    architecture: str  # in GGUF: general.architecture
    known_as: str
    qkv_bias: bool = False  # always, and never on the output; else as `attention_bias` says
    qk_norm: bool = False  # each head of q and k has an RMS norm
    # llama.cpp's converter lays the rotary pairs of q and k side by side: rows (i, i + half) of a
    # head become (2i, 2i + 1).
    pairs_side_by_side: bool = False


FAMILIES = (
    Family("llama", "llama", "Llama, SmolLM2, TinyLlama", pairs_side_by_side=True),
    Family("mistral", "llama", "Mistral", pairs_side_by_side=True),
    Family("qwen2", "qwen2", "Qwen2.5", qkv_bias=True),
    Family("qwen3", "qwen3", "Qwen3", qk_norm=True),
)
BY_MODEL_TYPE = {family.model_type: family for family in FAMILIES}
# The first of an architecture: those that share one are alike to llama.cpp.
BY_ARCHITECTURE = {family.architecture: family for family in reversed(FAMILIES)}
SUPPORTED = f"{', '.join(BY_MODEL_TYPE)} ({', '.join(family.known_as for family in FAMILIES)})"


def longest_context(values: Mapping[str, Any]) -> int:
    """Attention here is full, so a model with a sliding window goes as far as its window."""
    window = values.get("sliding_window")
    longest: int = values["max_position_embeddings"]
    return min(longest, window) if window and values.get("use_sliding_window", True) else longest


def decoder_config(values: Mapping[str, Any], context: int | None = None) -> DecoderConfig:
    """Of a whole config.json of one of these families; without `context`, what most pages hold."""
    family = BY_MODEL_TYPE[values["model_type"]]
    heads, width = values["num_attention_heads"], values["hidden_size"]
    head_dim = values.get("head_dim") or width // heads
    if head_dim < 2 or head_dim % 2:
        raise ModelError(
            f"heads are {head_dim} wide; rotary positions need an even width", "get another model"
        )
    chosen = min(longest_context(values), DEFAULT_CONTEXT) if context is None else context
    if chosen < MIN_CONTEXT:
        raise ModelError(
            f"a context of {chosen} positions has no room for an answer", "get another model"
        )
    attention_bias = bool(values.get("attention_bias"))
    return DecoderConfig(
        vocabulary=values["vocab_size"],
        width=width,
        hidden=values["intermediate_size"],
        layers=values["num_hidden_layers"],
        heads=heads,
        kv_heads=values["num_key_value_heads"],
        head_dim=head_dim,
        context=chosen,
        max_chunk=min(chosen, MAX_CHUNK),
        eps=values["rms_norm_eps"],
        rotary=head_dim,
        qkv_bias=family.qkv_bias or attention_bias,
        o_bias=attention_bias and not family.qkv_bias,
        mlp_bias=bool(values.get("mlp_bias")),
        qk_norm=family.qk_norm,
        tied=bool(values["tie_word_embeddings"]),
    )
