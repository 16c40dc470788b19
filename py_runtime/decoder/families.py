"""Families of models: one row each. The exporter and the reader of GGUF files go by this table.

What a model of a family says of itself comes in the words of a Hugging Face config.json, which
py_runtime/decoder/config_json.py reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from py_runtime.decoder.config import (
    AFTER,
    AROUND,
    BEFORE,
    CLAMPED,
    DELTA_NET,
    GELU,
    HEADS,
    ROWS,
    SHORT_CONV,
    SIGMOID,
    SILU,
)
from py_runtime.decoder.mixtures import Mixture

Fused = Mapping[str, tuple[str, ...]]  # a tensor of a layer → the decoder's, one after the other
FUSED_QKV: Fused = {"self_attn.qkv_proj": tuple(f"self_attn.{part}_proj" for part in "qkv")}
FUSED_MLP: Fused = {"mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj")}
SHARED_MLP: Fused = {
    "shared_mlp.input_linear": ("mlp.gate_proj", "mlp.up_proj"),
    "shared_mlp.output_linear": ("mlp.down_proj",),
}
SHARED_EXPERT: Fused = {
    "shared_mlp.input_linear": ("shared_mlp.gate_proj", "shared_mlp.up_proj"),
    "shared_mlp.output_linear": ("shared_mlp.down_proj",),
}
# GGUF keeps the name of the half that comes second.
GGUF_FUSED: Fused = {
    "attn_qkv": FUSED_QKV["self_attn.qkv_proj"],
    "ffn_up": FUSED_MLP["mlp.gate_up_proj"],
}


@dataclass(frozen=True)
class Family:
    """What sets it apart from Llama, and what it is called."""

    model_type: str  # in config.json
    architecture: str  # in GGUF: general.architecture
    known_as: str
    qkv_bias: bool = False  # always, and never on the output; else as `attention_bias` says
    qk_norm: str | None = None
    # llama.cpp's converter lays the rotary pairs of q and k side by side: rows (i, i + half) of a
    # head become (2i, 2i + 1).
    pairs_side_by_side: bool = False
    norms: str = BEFORE
    norms_from_one: bool = False  # checkpoints hold what norms have beyond 1; GGUF files do not
    activation: str = SILU
    root_of_width: bool = False  # embeddings are multiplied with it
    turns_only_sliding: bool = False  # where some layers slide, the others do not turn heads
    fused: Fused = field(default_factory=dict)  # in checkpoints
    gguf_fused: Fused = field(default_factory=dict)
    # What GGUF files call tensors of this family alone → what they are called in all others.
    gguf_names: Mapping[str, str] = field(default_factory=dict)
    predicts_ahead: bool = False  # GGUF files may have further layers, for tokens to come
    gated_attention: bool = False  # checkpoints have a head's gate behind its query, in one matrix
    mixers: Mapping[str, str] = field(default_factory=dict)  # of layer_types without attention
    mixture: Mixture | None = None  # MLPs are of experts, but for those of the first layers in some
    sinks: bool = False  # of attention
    value_norm: bool = False  # heads of v are normalised, without weights
    unscaled_scores: bool = False
    layer_scalars: bool = False  # each layer ends with a multiplication
    layers_differ: bool = False  # in their widths: GGUF files have a list of them
    # Queries grow beyond the original context, where rope_parameters have llama_4_scaling_beta.
    scales_queries: bool = False


FAMILIES = (
    Family("llama", "llama", "Llama, SmolLM2, TinyLlama, Falcon3", pairs_side_by_side=True),
    Family("mistral", "llama", "Mistral", pairs_side_by_side=True),
    Family("qwen2", "qwen2", "Qwen2.5", qkv_bias=True),
    Family("qwen3", "qwen3", "Qwen3", qk_norm=HEADS),
    Family("qwen3_moe", "qwen3moe", "Qwen3 with experts", qk_norm=HEADS, mixture=Mixture()),
    Family("qwen3_vl_text", "qwen3vl", "the text part of Qwen3-VL", qk_norm=HEADS),
    Family(
        "phi3",
        "phi3",
        "Phi-3, Phi-3.5, Phi-4-mini",
        fused={**FUSED_QKV, **FUSED_MLP},
        gguf_fused=GGUF_FUSED,
    ),
    Family("smollm3", "smollm3", "SmolLM3", pairs_side_by_side=True),
    Family("granite", "granite", "Granite 3", pairs_side_by_side=True),
    Family(
        "granitemoehybrid",
        "granite",
        "Granite 4 without Mamba",
        pairs_side_by_side=True,
        fused=SHARED_MLP,
    ),
    Family(
        "granitemoe",
        "granitemoe",
        "Granite 3 with experts",
        pairs_side_by_side=True,
        mixture=Mixture(stacked=True),
    ),
    Family(
        "granitemoeshared",
        "granitemoe",
        "Granite with a shared expert",
        pairs_side_by_side=True,
        fused=SHARED_EXPERT,
        mixture=Mixture(stacked=True, has_shared=True),
    ),
    Family("minicpm", "minicpm", "MiniCPM", pairs_side_by_side=True),
    Family(
        "ministral3",
        "mistral3",
        "Ministral 3",
        pairs_side_by_side=True,
        scales_queries=True,
    ),
    Family("exaone", "exaone", "EXAONE 3.5"),
    Family(
        "exaone4",
        "exaone4",
        "EXAONE 4",
        qk_norm=HEADS,
        norms=AFTER,
        turns_only_sliding=True,
    ),
    Family("olmo2", "olmo2", "OLMo 2", qk_norm=ROWS, norms=AFTER),
    Family("olmo3", "olmo2", "OLMo 3", qk_norm=ROWS, norms=AFTER),
    Family("gemma", "gemma", "Gemma", norms_from_one=True, activation=GELU, root_of_width=True),
    Family(
        "gemma2",
        "gemma2",
        "Gemma 2",
        norms=AROUND,
        norms_from_one=True,
        activation=GELU,
        root_of_width=True,
    ),
    Family(
        "gemma3_text",
        "gemma3",
        "Gemma 3 (text)",
        qk_norm=HEADS,
        norms=AROUND,
        norms_from_one=True,
        activation=GELU,
        root_of_width=True,
    ),
    Family(
        "gemma4_text",
        "gemma4",
        "the text part of Gemma 4 (E2B, E4B)",
        qk_norm=HEADS,
        norms=AROUND,
        activation=GELU,
        root_of_width=True,
        value_norm=True,
        unscaled_scores=True,
        layer_scalars=True,
        layers_differ=True,
    ),
    Family(
        "lfm2",
        "lfm2",
        "LFM2 (dense)",
        qk_norm=HEADS,
        gguf_names={"token_embd_norm": "output_norm"},
        mixers={"conv": SHORT_CONV},
    ),
    Family(
        "lfm2_moe",
        "lfm2moe",
        "LFM2 with experts",
        qk_norm=HEADS,
        gguf_names={"token_embd_norm": "output_norm"},
        mixers={"conv": SHORT_CONV},
        mixture=Mixture(SIGMOID),
    ),
    Family(
        "gpt_oss",
        "gpt-oss",
        "gpt-oss",
        gguf_names={"post_attention_norm": "ffn_norm"},
        mixture=Mixture(activation=CLAMPED, has_bias=True, interleaved=True),
        sinks=True,
    ),
    Family(
        "qwen3_5_text",
        "qwen35",
        "the text part of Qwen3.5 (dense)",
        qk_norm=HEADS,
        norms_from_one=True,
        gguf_names={"post_attention_norm": "ffn_norm"},
        predicts_ahead=True,
        gated_attention=True,
        mixers={"linear_attention": DELTA_NET},
    ),
)
BY_MODEL_TYPE = {family.model_type: family for family in FAMILIES}
# The first of an architecture: those that share one are alike to llama.cpp.
BY_ARCHITECTURE = {family.architecture: family for family in reversed(FAMILIES)}
SUPPORTED = f"{', '.join(BY_MODEL_TYPE)} ({', '.join(family.known_as for family in FAMILIES)})"
