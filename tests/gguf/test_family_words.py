"""The keys of each architecture in the words of a config.json: left out, given, and their bounds.

What is left out is what llama.cpp has for the architecture.
"""

from math import sqrt
from typing import Any

import pytest

from py_runtime.decoder.limits import MAX_PER_LAYER
from py_runtime.decoder.words import FULL, SLIDING, TILED
from tests.gguf.small_keys import (
    CONTEXT,
    CONV,
    EXPERTS,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    LAYERS,
    PATTERN,
    PLAIN,
    ROUTING,
    SSM,
    VOCABULARY,
    WIDTH,
    WIDTHS,
    WINDOW,
    words_of,
)


def every(period: int) -> list[str]:
    """Return the kinds of layers, where each last of a period is full."""
    return [FULL if number % period == 0 else SLIDING for number in range(1, LAYERS + 1)]


DELTA = {
    "linear_conv_kernel_dim": 4,
    "linear_num_key_heads": 3,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 10,
    "linear_value_head_dim": 7,
    TILED: True,
}
ROUTED = {"num_local_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": True}
MIXED = ROUTED | {"moe_intermediate_size": 11}
SCANNED = {
    "mamba_n_heads": 6,
    "mamba_d_head": 7,
    "mamba_d_state": 10,
    "mamba_n_groups": 3,
    "mamba_d_conv": 4,
    "mamba_norm_groups": 3,
}
KINDS_OF_LAYERS = {"attention.head_count_kv": CONV["attention.head_count_kv"]}
LINEAR_OR_FULL = [
    FULL if kv else "linear_attention"
    for kv in CONV["attention.head_count_kv"]  # type: ignore[attr-defined]
]
CONVOLVED = {
    "layer_types": [FULL if kv else "conv" for kv in CONV["attention.head_count_kv"]],  # type: ignore[attr-defined]
    "conv_L_cache": 3,
    "block_auto_adjust_ff_dim": False,
}
SCALED = {
    "embedding_scale": 3.0,
    "residual_scale": 0.5,
    "logit_scale": 7.0,
    "attention.scale": 0.25,
}
MULTIPLIED = {
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.5,
    "logits_scaling": 7.0,
    "attention_multiplier": 0.25,
}
ROOT = HEAD_DIM**-0.5
PHI = PLAIN | {"original_max_position_embeddings": CONTEXT}
OLMO = {"model_type": "olmo3", "rope_parameters": {FULL: PLAIN, SLIDING: PLAIN}}
GEMMA = {"query_pre_attn_scalar": HEAD_DIM, "hidden_activation": "the family's"}
SWA = {"rope_type": "default", "rope_theta": 10000.0}
GEMMA_ROPES = {"rope_parameters": {FULL: PLAIN | {"rope_theta": 1e6}, SLIDING: SWA}}
GEMMA_4 = {
    "head_dim": HEAD_DIM,
    "global_head_dim": HEAD_DIM,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "vocab_size_per_layer_input": VOCABULARY,
    "hidden_size_per_layer_input": 0,
    "sliding_window": 512,
    "layer_types": every(5),
    "hidden_activation": "the family's",
    "final_logit_softcapping": 30.0,
    **GEMMA_ROPES,
}

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("qwen2", {}, {"max_position_embeddings": CONTEXT}),
    ("qwen2", {WINDOW: 299}, {"max_position_embeddings": 299}),
    ("qwen2", {WINDOW: 301}, {"max_position_embeddings": CONTEXT}),
    ("qwen2", {WINDOW: 0}, {"max_position_embeddings": CONTEXT}),
    ("llama", {}, {}),
    ("llama", {WINDOW: 0}, {}),
    ("llama", {WINDOW: 1}, {"sliding_window": 1}),
    ("phi3", {}, {"rope_parameters": PHI}),
    ("phi3", {"rope.scaling.type": "longrope"}, {"rope_parameters": PHI}),
    (
        "phi3",
        {"rope.scaling.original_context_length": 64, WINDOW: 31},
        {
            "rope_parameters": PLAIN | {"original_max_position_embeddings": 64},
            "sliding_window": 31,
        },
    ),
    ("smollm3", {}, {"no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0, 1]}),
    ("granite", {}, {"attention_multiplier": ROOT}),
    ("granite", SCALED, MULTIPLIED),
    ("granite", {"rope.scaling.finetuned": True}, {"attention_multiplier": ROOT}),
    (
        "granite",
        {"rope.scaling.finetuned": False},
        {"attention_multiplier": ROOT, "position_embedding_type": None},
    ),
    ("granitemoe", {}, {"attention_multiplier": ROOT, "model_type": "granite"}),
    ("granitemoe", ROUTING, {"attention_multiplier": ROOT} | ROUTED),
    ("granitemoe", ROUTING | SCALED, MULTIPLIED | ROUTED),
    (
        "granitemoe",
        ROUTING | {"expert_shared_feed_forward_length": 1},
        {"attention_multiplier": ROOT, "model_type": "granitemoeshared"}
        | {"shared_intermediate_size": 1}
        | ROUTED,
    ),
    (
        "minicpm",
        {},
        {
            "embedding_multiplier": 12.0,
            "residual_multiplier": 1.4 / sqrt(LAYERS),
            "logits_scaling": WIDTH / 256,
            "attention_multiplier": ROOT,
            "rope_parameters": PHI,
        },
    ),
    ("minicpm", SCALED, MULTIPLIED | {"rope_parameters": PHI}),
    ("mistral3", {}, {}),
    ("mistral3", {"attention.temperature_scale": 0.1}, {}),
    ("mistral3", {WINDOW: 31}, {"sliding_window": 31}),
    ("exaone4", {}, {"sliding_window": None, "layer_types": [FULL] * LAYERS}),
    ("exaone4", {WINDOW: 31}, {"sliding_window": 31, "layer_types": every(4)}),
    ("exaone4", {WINDOW: 31, PATTERN: 3}, {"sliding_window": 31, "layer_types": every(3)}),
    ("olmo2", {}, {}),
    ("olmo2", {WINDOW: 31}, OLMO | {"sliding_window": 31, "layer_types": every(4)}),
    (
        "olmo2",
        {WINDOW: 31, PATTERN: [True, False] * 5},
        OLMO | {"sliding_window": 31, "layer_types": [SLIDING, FULL] * 4 + [SLIDING]},
    ),
    ("lfm2", CONV, CONVOLVED),
    ("lfm2", CONV | {"attention.head_count_kv": 3}, CONVOLVED | {"layer_types": [FULL] * LAYERS}),
    (
        "lfm2moe",
        CONV | EXPERTS,
        CONVOLVED | MIXED | {"num_dense_layers": 0, "routed_scaling_factor": 1.0},
    ),
    (
        "lfm2moe",
        CONV
        | EXPERTS
        | {
            "expert_gating_func": 2,
            "leading_dense_block_count": LAYERS,
            "expert_weights_scale": 2.5,
        },
        CONVOLVED | MIXED | {"num_dense_layers": LAYERS, "routed_scaling_factor": 2.5},
    ),
    (
        "qwen35",
        SSM,
        DELTA | {"layer_types": [FULL if n % 4 == 0 else "linear_attention" for n in range(1, 10)]},
    ),
    (
        "qwen35",
        SSM | {"full_attention_interval": 3},
        DELTA | {"layer_types": [FULL if n % 3 == 0 else "linear_attention" for n in range(1, 10)]},
    ),
    (
        "granitehybrid",
        SSM | KINDS_OF_LAYERS,
        SCANNED
        | {"attention_multiplier": ROOT, "model_type": "granitemoehybrid"}
        | {"num_local_experts": 0, "shared_intermediate_size": HIDDEN}
        | {"layer_types": LINEAR_OR_FULL},
    ),
    (
        "granitehybrid",
        SSM | KINDS_OF_LAYERS | ROUTING | SCALED,
        SCANNED
        | MULTIPLIED
        | ROUTED
        | {"model_type": "granitemoeshared", "layer_types": LINEAR_OR_FULL},
    ),
    (
        "nemotron_h",
        SSM | KINDS_OF_LAYERS | {"feed_forward_length": [0, 0, 0, 7, *[0] * 5]},
        SCANNED
        | {"position_embedding_type": None}
        | {"layer_types": [*LINEAR_OR_FULL[:3], "mlp", *LINEAR_OR_FULL[4:]]},
    ),
    (
        "gpt-oss",
        EXPERTS,
        MIXED
        | {
            "sliding_window": 128,
            "layer_types": every(2),
            "rope_parameters": PLAIN | {"truncate": False},
        },
    ),
    ("qwen3moe", EXPERTS, MIXED),
    (
        "gemma2",
        {},
        GEMMA
        | {
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            "sliding_window": 4096,
            "layer_types": every(2),
        },
    ),
    (
        "gemma2",
        {"attn_logit_softcapping": 40.0, "final_logit_softcapping": 20.0, WINDOW: 31},
        GEMMA
        | {
            "attn_logit_softcapping": 40.0,
            "final_logit_softcapping": 20.0,
            "sliding_window": 31,
            "layer_types": every(2),
        },
    ),
    (
        "gemma3",
        {},
        GEMMA
        | GEMMA_ROPES
        | {"sliding_window": 1024, "layer_types": every(6), "final_logit_softcapping": None},
    ),
    (
        "gemma3",
        {"rope.freq_base": 3e5, "rope.freq_base_swa": 2e4},
        GEMMA
        | {"sliding_window": 1024, "layer_types": every(6), "final_logit_softcapping": None}
        | {
            "rope_parameters": {
                FULL: PLAIN | {"rope_theta": 3e5},
                SLIDING: SWA | {"rope_theta": 2e4},
            }
        },
    ),
    ("gemma4", {"feed_forward_length": HIDDEN}, GEMMA_4),
    (
        "gemma4",
        {
            "feed_forward_length": WIDTHS,
            "attention.shared_kv_layers": 2,
            "attention.key_length_swa": 10,
            "attention.value_length_swa": 10,
            "embedding_length_per_layer_input": MAX_PER_LAYER,
            "final_logit_softcapping": 20.0,
            "rope.dimension_count_swa": 10,
            WINDOW: 31,
        },
        GEMMA_4
        | {
            "head_dim": 10,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "hidden_size_per_layer_input": MAX_PER_LAYER,
            "final_logit_softcapping": 20.0,
            "sliding_window": 31,
        },
    ),
    (
        "gemma4",
        {"feed_forward_length": HIDDEN, "attention.shared_kv_layers": LAYERS - 1},
        GEMMA_4 | {"num_kv_shared_layers": LAYERS - 1},
    ),
]


@pytest.mark.parametrize(
    ("architecture", "given", "wanted"),
    CASES,
    ids=[f"{row[0]} {', '.join(row[1]) or 'and nothing'}" for row in CASES],
)
def test_words(architecture: str, given: dict[str, Any], wanted: dict[str, Any]) -> None:
    given = {"context_length": CONTEXT} | given
    assert words_of(architecture, given) == {"rope_parameters": PLAIN} | wanted


@pytest.mark.parametrize(("architecture", "layers"), [("gemma2", 46), ("gemma3", 62)])
def test_one_size_of_gemma_has_scores_of_another_scale(architecture: str, layers: int) -> None:
    for count, scalar in ((layers - 1, HEAD_DIM), (layers, WIDTH // HEADS), (layers + 1, HEAD_DIM)):
        words = words_of(architecture, {}, num_hidden_layers=count)
        assert words["query_pre_attn_scalar"] == scalar
