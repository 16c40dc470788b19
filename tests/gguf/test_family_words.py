"""The keys of each architecture in the words of a config.json: left out, given, and their bounds.

What is left out is what llama.cpp has for the architecture.
"""

from math import sqrt
from typing import Any

import numpy as np
import pytest

from py_runtime.decoder.families import BY_ARCHITECTURE
from py_runtime.decoder.limits import (
    MAX_EXPERTS,
    MAX_HEAD_DIM,
    MAX_HIDDEN,
    MAX_KEYS,
    MAX_PER_LAYER,
    MAX_TAPS,
    MAX_USED,
)
from py_runtime.decoder.words import FULL, SLIDING, TILED
from py_runtime.gguf.config import family_words
from py_runtime.gguf.errors import GgufError
from py_runtime.gguf.keys import Keys
from py_runtime.gguf.metadata import Metadata, Value, ValueType

LAYERS, HEADS, KV_HEADS, HEAD_DIM, WIDTH, HIDDEN, CONTEXT = 9, 6, 3, 14, 77, 109, 300
VOCABULARY = 131
SIZES = {
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "max_position_embeddings": CONTEXT,
    "hidden_act": "the family's",
    "vocab_size": VOCABULARY,
}
KINDS = {bool: ValueType.BOOL, int: ValueType.U32, float: ValueType.F32, str: ValueType.TEXT}
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}


def keys_of(architecture: str, given: dict[str, Any]) -> Keys:
    values = {}
    for key, item in given.items():
        if isinstance(item, list):
            value = Value(KINDS[type(item[0])], np.array(item), is_array=True)
        else:
            value = Value(KINDS[type(item)], item)
        values[f"{architecture}.{key}"] = value
    return Keys(Metadata("x.gguf", values), architecture)


def words_of(architecture: str, given: dict[str, Any], **sizes: int) -> dict[str, Any]:
    family = BY_ARCHITECTURE[architecture]
    return family_words(keys_of(architecture, given), family, SIZES | sizes)


def every(period: int) -> list[str]:
    """Return the kinds of layers, where each last of a period is full."""
    return [FULL if number % period == 0 else SLIDING for number in range(1, LAYERS + 1)]


SSM = {
    "ssm.time_step_rank": 6,
    "ssm.inner_size": 42,
    "ssm.conv_kernel": 4,
    "ssm.group_count": 3,
    "ssm.state_size": 10,
}
DELTA = {
    "linear_conv_kernel_dim": 4,
    "linear_num_key_heads": 3,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 10,
    "linear_value_head_dim": 7,
    TILED: True,
}
ROUTING = {"expert_count": 8, "expert_used_count": 3}
ROUTED = {"num_local_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": True}
EXPERTS = ROUTING | {"expert_feed_forward_length": 11}
MIXED = ROUTED | {"moe_intermediate_size": 11}
CONV = {"attention.head_count_kv": [0, 3, 3, 0, 3, 0, 0, 3, 0], "shortconv.l_cache": 3}
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
WINDOW = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"
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
WIDTHS = [HIDDEN] * 7 + [2 * HIDDEN] * 2

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


BOUNDS = [  # the key, the least and the most it may be, and the word it becomes
    ("qwen35", SSM, "full_attention_interval", 1, 1 << 10, None),
    ("qwen35", SSM, "ssm.conv_kernel", 2, MAX_TAPS, "linear_conv_kernel_dim"),
    ("qwen35", SSM, "ssm.state_size", 1, MAX_KEYS, "linear_key_head_dim"),
    ("lfm2", CONV, "shortconv.l_cache", 2, MAX_TAPS, "conv_L_cache"),
    ("qwen3moe", EXPERTS, "expert_feed_forward_length", 1, MAX_HIDDEN, "moe_intermediate_size"),
    ("qwen3moe", EXPERTS, "expert_count", 3, MAX_EXPERTS, "num_local_experts"),
    ("qwen3moe", EXPERTS, "expert_used_count", 1, 8, "num_experts_per_tok"),
    (
        *("qwen3moe", EXPERTS | {"expert_used_count": 1}, "expert_count"),
        *(1, MAX_EXPERTS, "num_local_experts"),
    ),
    (
        *("qwen3moe", EXPERTS | {"expert_count": 100}, "expert_used_count"),
        *(1, MAX_USED, "num_experts_per_tok"),
    ),
    ("granitemoe", ROUTING, "expert_shared_feed_forward_length", 0, MAX_HIDDEN, None),
    ("lfm2moe", CONV | EXPERTS, "leading_dense_block_count", 0, LAYERS, "num_dense_layers"),
    ("lfm2moe", CONV | EXPERTS, "expert_gating_func", 2, 2, None),
    (
        *("gemma4", {"feed_forward_length": HIDDEN}, "attention.shared_kv_layers"),
        *(0, LAYERS - 1, "num_kv_shared_layers"),
    ),
    (
        *("gemma4", {"feed_forward_length": HIDDEN}, "embedding_length_per_layer_input"),
        *(0, MAX_PER_LAYER, "hidden_size_per_layer_input"),
    ),
    (
        *("gemma4", {"feed_forward_length": HIDDEN}, "rope.dimension_count_swa"),
        *(HEAD_DIM, HEAD_DIM, "head_dim"),
    ),
]


@pytest.mark.parametrize(
    ("architecture", "given", "key", "least", "most", "word"),
    BOUNDS,
    ids=[f"{row[0]} {row[2]} to {row[4]}" for row in BOUNDS],
)
def test_bounds(
    architecture: str, given: dict[str, Any], key: str, least: int, most: int, word: str | None
) -> None:
    for value in (least, most):
        words = words_of(architecture, given | {key: value})
        assert word is None or words[word] == value
    for value in (least - 1, most + 1):
        with pytest.raises(GgufError):
            words_of(architecture, given | {key: value})


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("qwen35", SSM | {"ssm.inner_size": 43}),
    ("qwen35", SSM | {"ssm.inner_size": 0}),
    ("exaone4", {WINDOW: 31, PATTERN: 0}),
    ("exaone4", {WINDOW: 31, PATTERN: (1 << 10) + 1}),
    ("exaone4", {WINDOW: 31, PATTERN: [True] * (LAYERS - 1)}),
    ("gemma2", {"attn_logit_softcapping": 2e6}),
    ("gemma3", {"rope.freq_base_swa": 1.0}),
    ("gemma4", {"feed_forward_length": WIDTHS}),  # of layers that share nothing
    ("gemma4", {"feed_forward_length": WIDTHS, "attention.shared_kv_layers": 1}),
    ("gemma4", {"feed_forward_length": HIDDEN, "attention.value_length_swa": 10}),
    (
        "gemma4",
        {"feed_forward_length": HIDDEN}
        | {f"attention.{part}_length_swa": MAX_HEAD_DIM + 2 for part in ("key", "value")},
    ),
    ("lfm2", CONV | {"attention.head_count_kv": [0] * (LAYERS - 1)}),
    ("lfm2", CONV | {"attention.head_count_kv": [HEADS + 1] * LAYERS}),
    ("llama", {"rope.scaling.type": "longrope"}),
    ("phi3", {"rope.scaling.type": "dynamic"}),
    ("llama", {"rope.scaling.type": "linear"}),  # without its factor
    ("llama", {"rope.freq_base": 1.5}),
]


@pytest.mark.parametrize(("architecture", "given"), WRONG)
def test_what_is_refused(architecture: str, given: dict[str, Any]) -> None:
    with pytest.raises(GgufError):
        words_of(architecture, {"context_length": CONTEXT} | given)


ROPE = "rope.scaling"
YARN = {f"{ROPE}.type": "yarn", f"{ROPE}.factor": 4.0, "context_length": CONTEXT}
AS_YARN = PLAIN | {"rope_type": "yarn", "factor": 4.0}
ROPES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (f"{ROPE}.attn_factor", {f"{ROPE}.attn_factor": 1.5}, PLAIN | {"attn_factor": 1.5}),
    (
        "linear",
        {f"{ROPE}.type": "linear", f"{ROPE}.factor": 2.0},
        PLAIN | {"rope_type": "linear", "factor": 2.0},
    ),
    ("yarn", YARN, AS_YARN | {"original_max_position_embeddings": CONTEXT}),
    (
        "yarn's context",
        YARN | {f"{ROPE}.original_context_length": 32},
        AS_YARN | {"original_max_position_embeddings": 32},
    ),
    *(
        (
            f"an extrapolation of {given}",
            YARN | {f"{ROPE}.yarn_ext_factor": given},
            AS_YARN | {"original_max_position_embeddings": CONTEXT} | kept,
        )
        for given, kept in (
            (-1.0, {}),
            (-0.5, {}),
            (0.0, {"extrapolation_factor": 0.0}),
            (0.5, {"extrapolation_factor": 0.5}),
        )
    ),
]


@pytest.mark.parametrize(("name", "given", "wanted"), ROPES, ids=[row[0] for row in ROPES])
def test_rotary_positions(name: str, given: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert words_of("llama", given) == {"rope_parameters": wanted}


def test_ministral_scales_by_the_position_where_yarn_stretches() -> None:
    given = YARN | {"attention.temperature_scale": 0.1}
    assert words_of("mistral3", given)["rope_parameters"]["llama_4_scaling_beta"] == 0.1
    assert "llama_4_scaling_beta" not in words_of("mistral3", YARN)["rope_parameters"]


def test_keys_are_asked_for_within_bounds() -> None:
    keys = keys_of("llama", {"n": 5, "ns": [4, 5, 6], "f": 0.5, "t": "x", "b": False})
    assert "n" in keys
    assert "m" not in keys
    assert [keys.integer("n", 5, 5), keys.integer("m", 1, 2, default=7)] == [5, 7]
    assert [keys.number("f", 0.5, 0.5), keys.number("g", 1, 2, default=7.0)] == [0.5, 7.0]
    assert [keys.flag("b", True), keys.flag("c", True), keys.flag("c", False)] == [
        *(False, True, False),
    ]
    assert [keys.text("t", "y"), keys.text("u", "y")] == ["x", "y"]
    assert keys.integers("ns", 2, 4, 6) == [4, 5]
    assert keys.integers("n", 2, 1, 9) == [5, 5]
    assert keys.integers("m", 2, 1, 9, default=3) == [3, 3]
    for ask in (
        lambda: keys.integer("ns", 1, 9),
        lambda: keys.integer("m", 1, 9),
        lambda: keys.number("g", 1, 9),
        lambda: keys.integers("ns", 4, 1, 9),
        lambda: keys.integers("ns", 3, 5, 9),
        lambda: keys.integers("ns", 3, 1, 5),
    ):
        with pytest.raises(GgufError):
            ask()


@pytest.mark.parametrize(
    ("item", "is_refused"),
    [(0, False), (False, False), (0.0, False), (1, True), (True, True), (0.5, True), ([0], True)],
)
def test_zero_says_that_a_file_does_without(item: Any, is_refused: bool) -> None:
    keys = keys_of("llama", {"a": item})
    keys.refuse({"b": "something else"})
    if is_refused:
        with pytest.raises(GgufError, match="asks for such things"):
            keys.refuse({"a": "such things"})
    else:
        keys.refuse({"a": "such things"})
