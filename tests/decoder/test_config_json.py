"""The config.json of a model, with and without each key that may be left out.

No two sizes are the same, and none is a product of others: what is mixed up shows.
"""

from dataclasses import asdict, replace
from typing import Any

import pytest

from py_runtime.base.model_errors import ModelError
from py_runtime.decoder.config import (
    ATTENTION,
    BESIDE,
    CLAMPED,
    DELTA_NET,
    GELU,
    LOCAL,
    MAMBA,
    NOTHING,
    SHORT_CONV,
    SIGMOID,
    SILU,
    SOFTMAX,
    AttentionPart,
    DecoderConfig,
    DeltaSizes,
    ExpertSizes,
    LayerKind,
    MixerPart,
    MlpPart,
    NormPart,
    RopePart,
    ScanSizes,
)
from py_runtime.decoder.config_json import decoder_config, layer_kinds, ropes
from py_runtime.decoder.limits import (
    MAX_EXPERTS,
    MAX_KEYS,
    MAX_PER_LAYER,
    MAX_STATE,
    MAX_TAPS,
    MAX_USED,
)

FULL, SLIDING = "full_attention", "sliding_attention"
ROPE = {"rope_type": "default", "rope_theta": 1e4}
BARE: dict[str, Any] = {  # all that no model leaves out
    "model_type": "llama",
    "vocab_size": 103,
    "hidden_size": 84,
    "intermediate_size": 109,
    "num_hidden_layers": 5,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "max_position_embeddings": 300,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "rope_parameters": ROPE,
}
PLAIN = DecoderConfig(
    vocabulary=103,
    width=84,
    layers=5,
    context=300,
    max_chunk=300,
    attention=AttentionPart(
        heads=6,
        kv_heads=3,
        head_dim=14,
        qkv_bias=False,
        o_bias=False,
        qk_norm=None,
        value_norm=False,
        scale=None,
        score_cap=None,
        sinks=False,
        is_gated=False,
    ),
    rope=RopePart(rotated=14, scaled_queries=False),
    mixer=MixerPart(conv_taps=0, delta=None, scan=None),
    mlp=MlpPart(hidden=109, activation=SILU, has_bias=False, experts=None),
    norms=NormPart(place="before", eps=1e-5),
    kinds=(),
    embedding_scale=1.0,
    per_layer=0,
    layer_scalars=False,
    tied=False,
    logit_divisor=1.0,
    logit_cap=None,
)
DELTA = {
    "model_type": "qwen3_5_text",
    "layer_types": ["linear_attention", FULL] * 2 + [FULL],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 10,
    "linear_value_head_dim": 7,
    "linear_conv_kernel_dim": 4,
}
CONV = {"model_type": "lfm2", "layer_types": ["conv", FULL] * 2 + ["conv"], "conv_L_cache": 3}
GEMMA_4 = {
    "model_type": "gemma4_text",
    "sliding_window": 40,
    "layer_types": [SLIDING, FULL] * 2 + [FULL],
    "rope_parameters": {SLIDING: ROPE, FULL: ROPE},
    "hidden_size_per_layer_input": 11,
}
GRANITE_H = {
    "model_type": "granitemoehybrid",
    "layer_types": ["linear_attention"] * 2 + ["full_attention"] * 3,
    "residual_multiplier": 0.25,
    "mamba_n_heads": 6,
    "mamba_d_head": 7,
    "mamba_d_state": 10,
    "mamba_n_groups": 3,
    "mamba_d_conv": 4,
    "mamba_norm_groups": 1,
}
EXPERTS = {"model_type": "qwen3_moe", "num_experts": 9, "num_experts_per_tok": 4}


def read(**changes: Any) -> DecoderConfig:
    return decoder_config(BARE | changes)


def plain_but(**changes: Any) -> DecoderConfig:
    """Return the plain config with changes; a dict changes a part by what differs in it."""
    parts = {
        name: replace(getattr(PLAIN, name), **change) if isinstance(change, dict) else change
        for name, change in changes.items()
    }
    return replace(PLAIN, **parts)


def test_a_config_without_any_optional_key_is_a_plain_llama() -> None:
    assert read() == PLAIN


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"head_dim": 10}, {"attention": {"head_dim": 10}, "rope": {"rotated": 10}}),
        ({"head_dim": None}, {}),
        ({"max_position_embeddings": 1900}, {"context": 1900, "max_chunk": 512}),
        ({"max_position_embeddings": 2048}, {"context": 2048, "max_chunk": 512}),
        ({"max_position_embeddings": 9000}, {"context": 2048, "max_chunk": 512}),
        ({"max_position_embeddings": 2}, {"context": 2, "max_chunk": 2}),
        (
            {"head_dim": 28, "rope_parameters": ROPE | {"partial_rotary_factor": 0.5}},
            {"attention": {"head_dim": 28}, "rope": {"rotated": 14}},
        ),
        ({"attention_bias": True}, {"attention": {"qkv_bias": True, "o_bias": True}}),
        ({"attention_bias": False}, {}),
        ({"mlp_bias": True}, {"mlp": {"has_bias": True}}),
        ({"tie_word_embeddings": True}, {"tied": True}),
        ({"query_pre_attn_scalar": 25}, {"attention": {"scale": 0.2}}),
        ({"attention_multiplier": 0.3}, {"attention": {"scale": 0.3}}),
        ({"query_pre_attn_scalar": 25, "attention_multiplier": 0.3}, {"attention": {"scale": 0.2}}),
        ({"attn_logit_softcapping": 50.0}, {"attention": {"score_cap": 50.0}}),
        ({"attn_logit_softcapping": 0.0}, {}),
        ({"final_logit_softcapping": 30.0}, {"logit_cap": 30.0}),
        ({"final_logit_softcapping": 0.0}, {}),
        ({"embedding_multiplier": 12.0}, {"embedding_scale": 12.0}),
        ({"residual_multiplier": 0.5}, {"embedding_scale": 2.0, "norms": {"eps": 4e-5}}),
        ({"logits_scaling": 8.0}, {"logit_divisor": 8.0}),
        ({"shared_intermediate_size": 113}, {"mlp": {"hidden": 113}}),
        ({"use_bidirectional_attention": False}, {}),
        ({"use_bidirectional_attention": "vision"}, {}),
        ({"num_local_experts": 0}, {}),
        ({"vocab_size_per_layer_input": 5}, {}),  # of columns that there are none of
    ],
)
def test_optional_keys(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert read(**given) == plain_but(**wanted)


def test_a_context_may_be_asked_for() -> None:
    assert decoder_config(BARE, 40) == replace(PLAIN, context=40, max_chunk=40)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"model_type": "qwen2"}, {"attention": {"qkv_bias": True}}),
        ({"model_type": "qwen2", "attention_bias": True}, {"attention": {"qkv_bias": True}}),
        ({"model_type": "gemma"}, {"mlp": {"activation": GELU}, "embedding_scale": 84**0.5}),
    ],
)
def test_what_a_family_always_has(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert read(**given) == plain_but(**wanted)


@pytest.mark.parametrize(
    ("window", "longest"),
    [(1, 64), (31, 64), (32, 64), (33, 66), (255, 510), (256, 512), (257, 512)],
)
def test_chunks_are_at_most_two_windows_long(window: int, longest: int) -> None:
    config = read(sliding_window=window, max_position_embeddings=2000)
    assert config.max_chunk == longest


def test_a_convolution_and_its_boundaries() -> None:
    config = read(**CONV)
    assert config.mixer.conv_taps == 3
    assert [kind.mixer for kind in config.kinds] == [SHORT_CONV, ATTENTION] * 2 + [SHORT_CONV]
    assert config.kinds[0] == LayerKind(tables=None, mixer=SHORT_CONV)
    for taps in (2, MAX_TAPS):
        assert read(**CONV | {"conv_L_cache": taps}).mixer.conv_taps == taps
    assert config.mixer.delta is None


def test_a_delta_net_and_its_boundaries() -> None:
    config = read(**DELTA)
    assert (config.mixer.conv_taps, config.attention.is_gated) == (4, True)
    delta = config.mixer.delta
    assert delta == DeltaSizes(2, 6, 10, 7, tiled=False)
    assert (delta.values, delta.columns) == (42, 82)
    assert [kind.mixer for kind in config.kinds[:2]] == [DELTA_NET, ATTENTION]
    tiled = read(**DELTA, linear_value_heads_tiled=True)
    assert tiled.mixer.delta == replace(delta, tiled=True)
    for key_dim in (1, MAX_KEYS):
        assert read(**DELTA | {"linear_key_head_dim": key_dim}).mixer.delta


def test_mamba_and_its_boundaries() -> None:
    config = read(**GRANITE_H)
    scan = config.mixer.scan
    assert scan == ScanSizes(
        heads=6,
        head_dim=7,
        state_dim=10,
        groups=3,
        norm_groups=1,
        norm_eps=1e-5,
        conv_bias=True,
        proj_bias=False,
    )
    assert (scan.values, scan.columns, scan.projected) == (42, 102, 150)
    assert [kind.mixer for kind in config.kinds[:3]] == [MAMBA, MAMBA, ATTENTION]
    assert config.norms.eps == pytest.approx(1e-5 / 0.25**2)  # of the stream alone
    for rows in (1, MAX_STATE):
        assert read(**GRANITE_H | {"mamba_d_state": rows}).mixer.scan
    for wrong in ({"mamba_d_state": MAX_STATE + 1}, {"mamba_n_groups": 4}, {"mamba_n_heads": 0}):
        with pytest.raises(ModelError):
            read(**GRANITE_H | wrong)


def test_a_layer_may_be_one_part_or_have_two_mixers() -> None:
    nemotron = read(
        **GRANITE_H
        | {"model_type": "nemotron_h", "position_embedding_type": None}
        | {"layer_types": ["linear_attention", "mlp", "full_attention"] + ["mlp"] * 2}
    )
    assert [kind.mixer for kind in nemotron.kinds[:3]] == [MAMBA, NOTHING, ATTENTION]
    assert [kind.has_mlp for kind in nemotron.kinds[:3]] == [False, True, False]
    assert nemotron.tables == []
    falcon = read(**GRANITE_H | {"model_type": "falcon_h1", "layer_types": ["hybrid"] * 5})
    assert set(falcon.kinds) == {LayerKind(mixer=BESIDE)}
    assert falcon.tables == ["cos", "sin"]


def test_experts_with_nothing_said_of_them() -> None:
    config = read(**EXPERTS)
    assert config.mlp.experts == ExpertSizes(9, 4, 109, renormalised=True)
    assert asdict(config.mlp.experts) == {
        "count": 9,
        "used": 4,
        "hidden": 109,
        "renormalised": True,
        "scoring": SOFTMAX,
        "scale": 1.0,
        "activation": SILU,
        "has_bias": False,
        "shared": 0,
    }
    assert config.kinds == ()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"num_local_experts": 7}, {"count": 7}),
        ({"moe_intermediate_size": 17}, {"hidden": 17}),
        ({"norm_topk_prob": False}, {"renormalised": False}),
        ({"routed_scaling_factor": 2.5}, {"scale": 2.5}),
        ({"decoder_sparse_step": 1, "mlp_only_layers": []}, {}),
        ({"shared_intermediate_size": 19}, {}),
        ({"model_type": "granitemoeshared", "shared_intermediate_size": 19}, {"shared": 19}),
        ({"model_type": "granitemoeshared"}, {}),
        ({"model_type": "gpt_oss"}, {"activation": CLAMPED, "has_bias": True}),
        ({"model_type": "gpt_oss", "swiglu_limit": 7.0}, {"activation": CLAMPED, "has_bias": True}),
        ({"model_type": "lfm2_moe"}, {"scoring": SIGMOID}),
        ({"model_type": "lfm2_moe", "use_expert_bias": True}, {"scoring": SIGMOID}),
        ({"num_experts_per_tok": 1}, {"used": 1}),
        ({"num_experts_per_tok": 9}, {"used": 9}),
        ({"num_experts": MAX_EXPERTS}, {"count": MAX_EXPERTS}),
        ({"num_experts": 100, "num_experts_per_tok": MAX_USED}, {"count": 100, "used": MAX_USED}),
    ],
)
def test_what_experts_may_say(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    plain = ExpertSizes(9, 4, 109, renormalised=True)
    assert read(**EXPERTS | given).mlp.experts == replace(plain, **wanted)


def test_the_first_layers_of_a_mixture_may_be_dense() -> None:
    values = BARE | EXPERTS | {"num_dense_layers": 2}
    assert [kind.is_dense for kind in layer_kinds(values)] == [True, True, False, False, False]
    assert layer_kinds(BARE | {"num_dense_layers": 2}) == ()


def kinds_of(**changes: Any) -> list[tuple[int | None, str | None]]:
    return [(kind.window, kind.tables) for kind in layer_kinds(BARE | changes)]


TYPES = [SLIDING, FULL, SLIDING, FULL, FULL]
LAYERS = {"layer_types": TYPES, "sliding_window": 16}
SOME = [(16, ""), (None, ""), (16, ""), (None, ""), (None, "")]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"sliding_window": 16}, [(16, "")] * 5),
        ({"sliding_window": 16, "use_sliding_window": True}, [(16, "")] * 5),
        ({"sliding_window": 16, "use_sliding_window": False}, []),
        ({"sliding_window": None}, []),
        (LAYERS, SOME),
        (LAYERS | {"layer_types": [*TYPES, "another"]}, SOME),  # of layers there are none of
        (LAYERS | {"use_sliding_window": False}, []),
        ({"no_rope_layers": [1, 0, 1, 1, 0]}, [(None, t) for t in ("", None, "", "", None)]),
        ({"no_rope_layers": [1] * 5}, []),
        ({"position_embedding_type": "rope"}, []),
        ({"position_embedding_type": "nope"}, [(None, None)] * 5),
        (
            LAYERS | {"rope_parameters": {FULL: ROPE, SLIDING: ROPE}},
            [(16, LOCAL), (None, ""), (16, LOCAL), (None, ""), (None, "")],
        ),
        (
            LAYERS | {"model_type": "exaone4"},  # of which full layers do not turn
            [(16, ""), (None, None), (16, ""), (None, None), (None, None)],
        ),
        (
            LAYERS | {"model_type": "exaone4", "no_rope_layers": [0, 1, 1, 1, 1]},
            [(16, None), (None, None), (16, ""), (None, None), (None, None)],
        ),
        ({"model_type": "exaone4", "sliding_window": None}, []),
    ],
)
def test_which_layers_slide_and_turn(given: dict[str, Any], wanted: Any) -> None:
    assert kinds_of(**given) == wanted


def test_every_type_of_layer_that_a_family_knows_at_once() -> None:
    types = ["conv", FULL, SLIDING, "attention", FULL]
    kinds = layer_kinds(BARE | CONV | {"layer_types": types, "sliding_window": 16})
    assert [(kind.mixer, kind.window) for kind in kinds] == [
        *((SHORT_CONV, None), (ATTENTION, None), (ATTENTION, 16), (ATTENTION, None)),
        (ATTENTION, None),
    ]


@pytest.mark.parametrize(("given", "factor"), [({}, 75.0), ({"factor": 8.0}, 8.0)])
def test_the_factor_of_longrope_may_be_left_out(given: dict[str, Any], factor: float) -> None:
    rope = {"rope_type": "longrope", "original_max_position_embeddings": 4, **given}
    assert ropes(BARE | {"rope_parameters": rope})[""]["factor"] == factor
    plain = {"rope_type": "linear", "original_max_position_embeddings": 4, "rope_theta": 1.0}
    assert ropes(BARE | {"rope_parameters": plain}) == {"": plain}


def test_layers_of_gemma_4_share_and_differ() -> None:
    plain = read(**GEMMA_4)
    assert (plain.per_layer, plain.attention.scale, plain.attention.value_norm) == (11, 1.0, True)
    assert {(kind.head_dim, kind.hidden, kind.shares) for kind in plain.kinds} == {(None,) * 3}
    given = {"global_head_dim": 22, "num_kv_shared_layers": 2, "use_double_wide_mlp": True}
    kinds = read(**GEMMA_4, **given).kinds
    assert [kind.head_dim for kind in kinds] == [None, 22, None, 22, 22]
    assert [kind.shares for kind in kinds] == [None, None, None, 1, 1]
    assert [kind.hidden for kind in kinds] == [None, None, None, 218, 218]
    narrow = read(**GEMMA_4, **given | {"use_double_wide_mlp": False}).kinds
    assert [kind.hidden for kind in narrow] == [None] * 5
    config = read(**GEMMA_4, **given)
    assert (config.table_columns(""), config.table_columns(LOCAL)) == (22, 14)
    assert config.tables == ["cos", "sin", f"cos{LOCAL}", f"sin{LOCAL}"]
    widest = read(**GEMMA_4 | {"hidden_size_per_layer_input": MAX_PER_LAYER})
    assert widest.per_layer == MAX_PER_LAYER


PROPORTIONAL = {"rope_type": "proportional", "rope_theta": 1e4, "partial_rotary_factor": 0.25}
REFUSED: dict[str, dict[str, Any]] = {
    "a context without room for an answer": {"max_position_embeddings": 1},
    "an odd head": {"head_dim": 15},
    "no head": {"head_dim": -2},
    "an odd part that turns": {"rope_parameters": ROPE | {"partial_rotary_factor": 0.5}},
    "no part that turns": {"rope_parameters": ROPE | {"partial_rotary_factor": 0.1}},
    "more than a head turns": {"rope_parameters": ROPE | {"partial_rotary_factor": 1.2}},
    "tokens that see those after them": {"use_bidirectional_attention": True},
    "experts in a family without": {"num_local_experts": 2},
    "an unknown type of layer": {"layer_types": ["mamba"] * 5},
    "a type of layer of another family": {"layer_types": ["conv"] * 5},
    "too few types of layers": {"layer_types": [FULL] * 4},
    "too few turns": {"no_rope_layers": [1] * 4},
    "one tap": CONV | {"conv_L_cache": 1},
    "too many taps": CONV | {"conv_L_cache": MAX_TAPS + 1},
    "a convolution with a bias": CONV | {"conv_bias": True},
    "one tap of a delta net": DELTA | {"linear_conv_kernel_dim": 1},
    "no key columns": DELTA | {"linear_key_head_dim": 0},
    "too many key columns": DELTA | {"linear_key_head_dim": MAX_KEYS + 1},
    "uneven value heads": DELTA | {"linear_num_value_heads": 7},
    "values that are keys": {"attention_k_eq_v": True},
    "experts beside each MLP": {"enable_moe_block": True},
    "an odd head of full layers": GEMMA_4 | {"global_head_dim": 13},
    "a negative head of full layers": GEMMA_4 | {"global_head_dim": -4},
    "all layers share": GEMMA_4 | {"num_kv_shared_layers": 5},
    "fewer than no layer share": GEMMA_4 | {"num_kv_shared_layers": -1},
    "half a layer shares": GEMMA_4 | {"num_kv_shared_layers": 1.0},
    "a layer shares with none": GEMMA_4
    | {"layer_types": [FULL] * 4 + [SLIDING], "num_kv_shared_layers": 1},
    "too many columns for each layer": GEMMA_4 | {"hidden_size_per_layer_input": MAX_PER_LAYER + 1},
    "fewer than no column for each layer": GEMMA_4 | {"hidden_size_per_layer_input": -1},
    "layers without experts": EXPERTS | {"mlp_only_layers": [1]},
    "experts in every other layer": EXPERTS | {"decoder_sparse_step": 2},
    "nothing that chooses experts": EXPERTS | {"use_expert_bias": False},
    "another limit": EXPERTS | {"model_type": "gpt_oss", "swiglu_limit": 8.0},
    "another alpha": EXPERTS | {"model_type": "gpt_oss", "swiglu_alpha": 1.7},
    "no expert is used": EXPERTS | {"num_experts_per_tok": 0},
    "more are used than there are": EXPERTS | {"num_experts_per_tok": 10},
    "too many are used": EXPERTS | {"num_experts": 200, "num_experts_per_tok": MAX_USED + 1},
    "too many experts": EXPERTS | {"num_experts": MAX_EXPERTS + 1},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    with pytest.raises(ModelError):
        read(**REFUSED[name])


def test_the_smallest_heads() -> None:
    assert read(head_dim=2).rope.rotated == 2
    assert (
        read(head_dim=8, rope_parameters=ROPE | {"partial_rotary_factor": 0.25}).rope.rotated == 2
    )
    assert read(**GEMMA_4, global_head_dim=2).kinds[1].head_dim == 2
    # All of a head has a column in a proportional table, of which the later ones do not turn.
    assert read(head_dim=8, rope_parameters=PROPORTIONAL).rope.rotated == 8


def test_all_but_one_layer_may_share() -> None:
    types = {"layer_types": [FULL] * 5}
    kinds = read(**GEMMA_4 | types, num_kv_shared_layers=4).kinds
    assert [kind.shares for kind in kinds] == [None, 0, 0, 0, 0]
