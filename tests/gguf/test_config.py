"""The config of a GGUF file: taken where it can be computed, refused by name where not."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.model_errors import ModelError
from py_runtime.decoder.config import LayerKind
from py_runtime.gguf.config import read_config
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError
from py_runtime.gguf.model import GgufModel, open_model
from py_runtime.gguf.reader import open_gguf
from tests.fuzz.in_line import result_of
from tests.gguf import small
from tests.gguf.written import Tensor, file
from tests.pte.memory_source import MemorySource


def open_bytes(data: bytes) -> GgufModel:
    return result_of(open_model([MemorySource(data, "x.gguf")]))


def config_of(**changes: Any) -> dict[str, Any]:
    values = small.metadata() | {key.replace("__", "."): value for key, value in changes.items()}
    data = file(values, small.tensors())
    return read_config(result_of(open_gguf([MemorySource(data, "x.gguf")])))


def refused(
    changes: dict[str, Any], tensors: list[Tensor] | None = None, architecture: str = "llama"
) -> str:
    values = small.metadata(architecture) | changes
    given = {key: value for key, value in values.items() if value is not None}
    with pytest.raises(GgufError) as caught:
        open_bytes(file(given, small.tensors() if tensors is None else tensors))
    told = str(caught.value)
    assert told.startswith("x.gguf")
    assert told.count("x.gguf") == 1, "the file is named once"
    assert "\n" not in told
    assert "; " in told, "what to do is said too"
    return told


def test_a_whole_model() -> None:
    model = open_bytes(small.small_file())
    assert model.config.attention.heads == small.HEADS
    assert model.config.tied
    assert model.quantisation == "Q8_0"
    assert model.values["eos_token_id"] == [2]
    assert model.parameters == sum(int(np.prod(tensor.dims)) for tensor in small.tensors())
    assert [entry.value for entry in model.program.inputs] == [0, 1]


# Rope ---------------------------------------------------------------------------------------------


def test_every_key_of_yarn_is_kept() -> None:
    rope = config_of(
        llama__rope__scaling__type="yarn",
        llama__rope__scaling__factor=4.0,
        llama__rope__scaling__original_context_length=32,
        llama__rope__scaling__yarn_ext_factor=0.5,
        llama__rope__scaling__yarn_attn_factor=1.25,
        llama__rope__scaling__yarn_beta_fast=16.0,
        llama__rope__scaling__yarn_beta_slow=2.0,
        llama__rope__scaling__yarn_log_multiplier=0.5,
        llama__rope__scaling__attn_factor=1.5,
        llama__rope__freq_base=500000.0,
    )["rope_parameters"]
    assert rope == {
        "rope_type": "yarn",
        "rope_theta": 500000.0,
        "factor": 4.0,
        "original_max_position_embeddings": 32,
        "extrapolation_factor": 0.5,
        "attention_factor": 1.25,
        "beta_fast": 16.0,
        "beta_slow": 2.0,
        "mscale": 1.0,
        "mscale_all_dim": 0.5,
        "attn_factor": 1.5,
    }


def test_what_a_file_leaves_out() -> None:
    values = small.metadata()
    for key in ("rope.freq_base", "attention.head_count_kv"):
        del values[f"llama.{key}"]
    tensors = [t for t in small.tensors() if not t.name.startswith("blk.0.attn_")]
    rng = np.random.default_rng(0)
    tensors += [Tensor.floats("blk.0.attn_norm.weight", np.ones(small.WIDTH))]
    tensors += [
        small.matrix(rng, f"blk.0.attn_{part}.weight", 32, 32, "Q8_0")
        for part in ("q", "k", "v", "output")
    ]
    model = open_bytes(file(values, tensors))
    assert model.values["rope_parameters"] == {"rope_type": "default", "rope_theta": 10000.0}
    assert model.config.attention.kv_heads == small.HEADS


def test_a_window_is_that_of_every_layer() -> None:
    config = open_bytes(small.small_file(**{"llama.attention.sliding_window": 48})).config
    assert (config.context, config.kinds) == (64, (LayerKind(window=48),))


def test_a_window_that_may_not_be_meant_bounds_the_context() -> None:
    values = small.metadata("qwen3") | {"qwen3.attention.sliding_window": 48}
    config = open_bytes(file(values, small.qwen3_tensors())).config
    assert (config.context, config.kinds) == (48, ())


def test_factors_of_frequencies_are_read() -> None:
    factors = Tensor.floats("rope_freqs.weight", np.linspace(1, 8, small.HEAD_DIM // 2))
    plain, divided = (
        open_bytes(file(small.metadata(), tensors)).constants._tables["sin"]
        for tensors in (small.tensors(), [factors, *small.tensors()])
    )
    assert plain[1, 0] == divided[1, 0]
    assert plain[1, 7] > 7 * divided[1, 7] > 0


@pytest.mark.parametrize(("architecture", "layers"), [("gemma2", 46), ("gemma3", 62)])
def test_scores_of_27b_have_a_scale_of_their_own(architecture: str, layers: int) -> None:
    """Files do not say so: its number of layers tells it."""
    for count, scalar in ((layers, small.WIDTH // small.HEADS), (layers - 1, 8), (1, 8)):
        values = small.metadata(architecture) | {
            f"{architecture}.block_count": count,
            f"{architecture}.attention.key_length": 8,
            f"{architecture}.attention.value_length": 8,
        }
        data = file(values, small.tensors())
        config = read_config(result_of(open_gguf([MemorySource(data, "x.gguf")])))
        assert (config["head_dim"], config["query_pre_attn_scalar"]) == (8, scalar)


# The sixth check: sizes and shapes, before a byte of data is read ---------------------------------

SIZES = {
    "layers": ({"llama.block_count": 513}, "'llama.block_count' is 513, not from 1 to 512"),
    "no layers": ({"llama.block_count": 0}, "'llama.block_count' is 0, not from 1 to 512"),
    "one layer more": ({"llama.block_count": 2}, "'blk.1.attn_q.weight' is missing"),
    "heads": ({"llama.attention.head_count": 2**20}, "head_count' is 1048576, not from 1 to 4096"),
    "heads that do not divide": (
        {"llama.attention.head_count": 4, "llama.attention.head_count_kv": 3},
        "'llama.attention.head_count_kv' does not divide the 4 query heads",
    ),
    "wide heads": ({"llama.attention.key_length": 2**13}, "key_length' is 8192, not from 1 to"),
    "another width": (
        {"llama.embedding_length": 64},
        "'token_embd.weight' has the shape [261, 32], not [261, 64]",
    ),
    "another hidden width": (
        {"llama.feed_forward_length": 32},
        "'blk.0.ffn_gate.weight' has the shape [64, 32], not [32, 32]",
    ),
    "few tokens": (
        {"tokenizer.ggml.tokens": ["a"]},
        "has 1 tokens, but embeddings of 261: they must be as many",
    ),
    "both directions": ({"llama.attention.causal": False}, "tokens see those after them, too"),
    "no width": ({"llama.embedding_length": None}, "'llama.embedding_length' is missing"),
    "a width in floats": ({"llama.embedding_length": 32.0}, "is f32, not an integer"),
}


@pytest.mark.parametrize(("changes", "fault"), SIZES.values(), ids=SIZES)
def test_6_sizes(changes: dict[str, Any], fault: str) -> None:
    assert fault in refused(changes)


def test_6_what_no_decoder_can_be() -> None:
    for key, value, fault in (
        (
            "llama.attention.key_length",
            5,
            "heads are 5 wide, of which 5 turn; rotary",
        ),
        ("llama.context_length", 1, "a context of 1 positions has no room for an answer"),
    ):
        with pytest.raises(ModelError, match=fault):
            open_bytes(small.small_file(**{key: value}))


def test_6_no_data_is_read_before_the_shapes_are_right() -> None:
    data = small.small_file(**{"llama.block_count": 2})
    source = MemorySource(data + bytes(-len(data) % 32), "x.gguf")
    with pytest.raises(GgufError):
        result_of(open_model([source]))
    assert source.bytes_read <= len(data)


def test_6_tensors_that_would_be_lost() -> None:
    extra = Tensor.floats("blk.0.attn_sinks.weight", np.ones(2))
    told = refused({}, [*small.tensors(), extra])
    assert "has tensors that this engine does not compute with: 'blk.0.attn_sinks.weight'" in told
    picture = Tensor.floats("v.patch_embd.weight", np.ones(2))
    assert open_bytes(file(small.metadata(), [picture, *small.tensors()])).config.layers == 1


NUMBERS = {
    "eps": ({"llama.attention.layer_norm_rms_epsilon": 0.0}, "is 0, not from 1e-12 to 0.1"),
    "eps that is none": ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "is nan, which"),
    "theta": ({"llama.rope.freq_base": -1.0}, "'llama.rope.freq_base' is -1, not from 2 to"),
    "a factor": (
        {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 0.0},
        "'llama.rope.scaling.factor' is 0, not from 1e-06 to",
    ),
    "no factor": ({"llama.rope.scaling.type": "yarn"}, "'llama.rope.scaling.factor' is missing"),
}


@pytest.mark.parametrize(("changes", "fault"), NUMBERS.values(), ids=NUMBERS)
def test_8_numbers(changes: dict[str, Any], fault: str) -> None:
    assert fault in refused(changes)


def test_8_factors_of_frequencies() -> None:
    for values, fault in (
        (np.zeros(8), "'rope_freqs.weight' has values that no factor has"),
        (np.full(8, np.nan), "'rope_freqs.weight' has values that no factor has"),
        (np.ones(9), "'rope_freqs.weight' has the shape [9], not [8]"),
    ):
        told = refused({}, [Tensor.floats("rope_freqs.weight", values), *small.tensors()])
        assert fault in told


# What is sound, and not computed ------------------------------------------------------------------

UNSUPPORTED = {
    "another architecture": (
        {"general.architecture": "gptneox"},
        "the architecture 'gptneox' is not supported; these are: bert, exaone, exaone4, falcon-h1",
    ),
    "pictures": ({"general.architecture": "clip"}, "the part of a model that sees pictures, not"),
    "an adapter": ({"general.type": "adapter"}, "is an adapter for a model, not a model; give"),
    "an importance matrix": ({"general.type": "imatrix"}, "is an importance matrix, not a model"),
    "experts": ({"llama.expert_count": 8}, "'llama.expert_count' asks for mixtures of experts"),
    "heads by layer": (
        {"llama.attention.head_count_kv": [1, 2], "llama.block_count": 2},
        "'llama.attention.head_count_kv' differs from layer to layer, which this engine does not",
    ),
    "longrope": ({"llama.rope.scaling.type": "longrope"}, "scaling.type' is 'longrope', which"),
    "partial rope": ({"llama.rope.dimension_count": 8}, "dimension_count' differs from the heads'"),
    "soft caps": ({"llama.attn_logit_softcapping": 50.0}, "asks for soft caps on scores, which"),
}


@pytest.mark.parametrize(("changes", "fault"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_what_this_engine_does_not_compute(changes: dict[str, Any], fault: str) -> None:
    assert fault in refused(changes)


def test_one_number_of_heads_for_all_layers_may_be_said_of_each() -> None:
    assert config_of(llama__attention__head_count_kv=[1])["num_key_value_heads"] == 1


def test_keys_that_say_that_a_file_does_without() -> None:
    assert config_of(llama__expert_count=0, llama__use_parallel_residual=False)


@pytest.mark.parametrize("kind", ["IQ2_XXS", "IQ1_S", "TQ1_0"])
def test_types_without_kernels_are_named(kind: str) -> None:
    """Rows of 256, so that every type fits."""
    values = small.metadata() | {"llama.embedding_length": 256, "llama.attention.key_length": 16}
    wide = small.tensors(kind="F16", width=256)
    rng = np.random.default_rng(0)
    wide[0] = small.matrix(rng, "token_embd.weight", small.VOCABULARY, 256, kind)
    told = refused(values, wide)
    assert (
        f"has tensors of {kind}, which this engine cannot compute with yet; get the model" in told
    )


def test_unsupported_is_told_apart() -> None:
    with pytest.raises(UnsupportedGgufError):
        open_bytes(small.small_file(**{"general.type": "adapter"}))
