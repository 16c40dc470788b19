"""Layers of a GGUF file that are not all alike."""

from typing import Any

import pytest

from py_runtime.base.model_errors import ModelError
from py_runtime.decoder.config import ATTENTION, DELTA_NET, SHORT_CONV, DeltaSizes, ExpertSizes
from py_runtime.decoder.config_json import decoder_config
from py_runtime.gguf.config import read_config
from py_runtime.gguf.errors import GgufError
from py_runtime.gguf.reader import open_gguf
from tests.fuzz.in_line import result_of
from tests.gguf import small
from tests.gguf.written import file
from tests.pte.memory_source import MemorySource

# Layers without attention -------------------------------------------------------------------------


def lfm2(**changes: Any) -> dict[str, Any]:
    kv_heads = {"lfm2.attention.head_count_kv": [0, small.KV_HEADS], "lfm2.block_count": 2}
    values = small.metadata("lfm2") | kv_heads | {"lfm2.shortconv.l_cache": 3}
    values |= {f"lfm2.{key.replace('__', '.')}": value for key, value in changes.items()}
    data = file({k: v for k, v in values.items() if v is not None}, small.tensors())
    return read_config(result_of(open_gguf([MemorySource(data, "x.gguf")])))


def test_layers_without_heads_of_keys_convolve() -> None:
    config = lfm2()
    assert config["layer_types"] == ["conv", "full_attention"]
    assert config["num_key_value_heads"] == small.KV_HEADS
    kinds = decoder_config(config).kinds
    assert [kind.mixer for kind in kinds] == [SHORT_CONV, ATTENTION]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"shortconv__l_cache": None}, "'lfm2.shortconv.l_cache' is missing"),
        ({"shortconv__l_cache": 1}, "l_cache' is 1, not from 2 to 64"),
        ({"attention__head_count_kv": [0]}, "needs 2 integers"),
        ({"attention__head_count_kv": [1, 2]}, "differs from layer to layer"),
    ],
)
def test_convolutions_that_cannot_be(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(GgufError, match=fault):
        lfm2(**changes)


def qwen35(**changes: Any) -> dict[str, Any]:
    sizes = {"conv_kernel": 4, "state_size": 8, "group_count": 2, "time_step_rank": 4}
    values = small.metadata("qwen35") | {"qwen35.block_count": 6, "qwen35.ssm.inner_size": 48}
    values |= {f"qwen35.ssm.{key}": value for key, value in sizes.items()}
    values |= {f"qwen35.{key.replace('__', '.')}": value for key, value in changes.items()}
    data = file({k: v for k, v in values.items() if v is not None}, small.tensors())
    return read_config(result_of(open_gguf([MemorySource(data, "x.gguf")])))


def test_each_fourth_layer_is_attention_and_the_last_ones_predict_ahead() -> None:
    config = decoder_config(qwen35(nextn_predict_layers=1))
    assert config.layers == 5
    assert [kind.mixer for kind in config.kinds] == [*[DELTA_NET] * 3, ATTENTION, DELTA_NET]
    assert config.mixer.delta == DeltaSizes(2, 4, 8, 12, tiled=True)
    assert (config.mixer.conv_taps, config.attention.is_gated) == (4, True)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"ssm__inner_size": 47}, "is 47, not whole for 4 heads"),
        ({"ssm__state_size": 512}, "is 512, not from 1 to 256"),
        ({"ssm__conv_kernel": None}, "'qwen35.ssm.conv_kernel' is missing"),
        ({"nextn_predict_layers": 6}, "is 6, not from 0 to 5"),
    ],
)
def test_delta_nets_that_cannot_be(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(GgufError, match=fault):
        qwen35(**changes)


def test_key_heads_that_are_not_shared_evenly() -> None:
    with pytest.raises(ModelError, match="4 value heads share 3 key heads"):
        decoder_config(qwen35(ssm__group_count=3))


# Mixtures ----------------------------------------------------------------------------------------


def granitemoe(**changes: Any) -> dict[str, Any]:
    sizes = {"expert_count": 6, "expert_used_count": 2, "residual_scale": 0.5}
    values = small.metadata("granitemoe") | {f"granitemoe.{key}": sizes[key] for key in sizes}
    values |= {f"granitemoe.{key.replace('__', '.')}": value for key, value in changes.items()}
    data = file(values, small.tensors())
    return read_config(result_of(open_gguf([MemorySource(data, "x.gguf")])))


@pytest.mark.parametrize("shared", [0, 24])
def test_experts_of_granite_may_have_one_beside_them(shared: int) -> None:
    config = decoder_config(granitemoe(expert_shared_feed_forward_length=shared))
    assert config.mlp.experts == ExpertSizes(6, 2, small.HIDDEN, True, shared=shared)
    assert config.embedding_scale == 2


def test_a_granite_without_experts_may_be_called_so_too() -> None:
    config = decoder_config(granitemoe(expert_count=0, expert_used_count=0))
    assert (config.mlp.experts, config.mlp.hidden) == (None, small.HIDDEN)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"expert_used_count": 7}, "is 7, not from 1 to 6"),
        ({"expert_count": 1000}, "is 1,?000, not from 0 to 512"),
        ({"attention__head_count_kv": [0]}, "needs 1 integers from 1 to"),
    ],
)
def test_mixtures_that_cannot_be(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(GgufError, match=fault):
        granitemoe(**changes)


# Layers that differ, and share --------------------------------------------------------------------


def gemma4(**changes: Any) -> dict[str, Any]:
    sizes = {
        "block_count": 6,
        "attention.key_length": 16,
        "attention.value_length": 16,
        "attention.key_length_swa": 8,
        "attention.value_length_swa": 8,
        "attention.shared_kv_layers": 3,
        "attention.sliding_window": 24,
        "attention.sliding_window_pattern": [True, True, False] * 2,
        "feed_forward_length": [40] * 3 + [80] * 3,
        "embedding_length_per_layer_input": 4,
        "rope.dimension_count": 16,
    }
    values = small.metadata("gemma4") | {f"gemma4.{key}": value for key, value in sizes.items()}
    values |= {f"gemma4.{key.replace('__', '.')}": value for key, value in changes.items()}
    data = file({k: v for k, v in values.items() if v is not None}, small.tensors())
    return read_config(result_of(open_gguf([MemorySource(data, "x.gguf")])))


def test_the_last_layers_see_the_keys_of_the_last_of_their_kind() -> None:
    config = decoder_config(gemma4())
    assert [kind.shares for kind in config.kinds] == [None, None, None, 1, 1, 2]
    assert [kind.hidden for kind in config.kinds] == [None, None, None, 80, 80, 80]
    assert [config.attention.head_dim_of(kind) for kind in config.kinds] == [8, 8, 16] * 2
    assert [config.table_columns(ending) for ending in ("", "_local")] == [16, 8]
    assert (config.mlp.hidden, config.per_layer, config.attention.scale) == (40, 4, 1.0)


def test_one_width_of_all_layers_is_enough() -> None:
    config = decoder_config(gemma4(feed_forward_length=40, attention__head_count_kv=[1] * 6))
    assert {kind.hidden for kind in config.kinds} == {None}
    assert config.attention.kv_heads == 1


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"feed_forward_length": [40] * 4 + [80] * 2}, "differs from layer to layer"),
        ({"attention__head_count_kv": [1, 2] * 3}, "differs from layer to layer"),
        ({"attention__value_length_swa": 4}, "differs from the keys' width"),
        ({"attention__shared_kv_layers": 6}, "is 6, not from 0 to 5"),
        ({"rope__dimension_count_swa": 4}, "differs from the heads' 8"),
        ({"expert_count": 8}, "mixtures of experts"),
    ],
)
def test_layers_that_cannot_differ_so(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(GgufError, match=fault):
        gemma4(**changes)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"attention_k_eq_v": True}, "its values are its keys"),
        ({"global_head_dim": 15}, "15 wide; rotary positions need even widths"),
        ({"vocab_size_per_layer_input": 7}, "7 tokens have embeddings for each layer"),
        ({"num_kv_shared_layers": 5}, "share keys and values with none before them"),
        ({"use_bidirectional_attention": "all"}, "see those after them, too, as in EmbeddingGemma"),
        ({"use_bidirectional_attention": True}, "see those after them, too, as in EmbeddingGemma"),
    ],
)
def test_what_larger_or_other_models_have_is_told(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ModelError, match=fault):
        decoder_config(gemma4() | changes)
