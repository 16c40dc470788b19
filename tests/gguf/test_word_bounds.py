"""The bounds of what an architecture's keys may say, and what is refused."""

from typing import Any

import pytest

from py_runtime.decoder.limits import (
    MAX_EXPERTS,
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_KEYS,
    MAX_PER_LAYER,
    MAX_STATE,
    MAX_TAPS,
    MAX_USED,
)
from py_runtime.gguf.errors import GgufError
from tests.gguf.small_keys import (
    CONTEXT,
    CONV,
    EXPERTS,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    LAYERS,
    PATTERN,
    ROUTING,
    SSM,
    WIDTHS,
    WINDOW,
    words_of,
)

NEMOTRON = SSM | {
    "attention.head_count_kv": CONV["attention.head_count_kv"],
    "feed_forward_length": [0] * LAYERS,
}
BOUNDS = [  # the key, the least and the most it may be, and the word it becomes
    ("qwen35", SSM, "full_attention_interval", 1, 1 << 10, None),
    ("qwen35", SSM, "ssm.conv_kernel", 2, MAX_TAPS, "linear_conv_kernel_dim"),
    ("qwen35", SSM, "ssm.state_size", 1, MAX_KEYS, "linear_key_head_dim"),
    ("nemotron_h", NEMOTRON, "ssm.state_size", 1, MAX_STATE, "mamba_d_state"),
    ("nemotron_h", NEMOTRON, "ssm.conv_kernel", 2, MAX_TAPS, "mamba_d_conv"),
    ("nemotron_h", NEMOTRON, "ssm.group_count", 1, MAX_HEADS, "mamba_n_groups"),
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
    ("granitehybrid", SSM),  # which layers have Mamba
    ("nemotron_h", NEMOTRON | {"feed_forward_length": [0] * (LAYERS - 1)}),
    ("nemotron_h", NEMOTRON | {"ssm.inner_size": 43}),
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
