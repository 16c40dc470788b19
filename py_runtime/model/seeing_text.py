"""The decoder's half of a config.json of a model that sees, whole: with what it leaves unsaid."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder import limits
from py_runtime.decoder.config_json import ROPE_TYPES
from py_runtime.decoder.families.gemma import gemma4_checkpoint_words
from py_runtime.decoder.families.lfm2 import CONV
from py_runtime.decoder.families.lfm2 import checkpoint_words as lfm2_words
from py_runtime.decoder.rotary import PROPORTIONAL
from py_runtime.decoder.words import DEEP, FULL, SLIDING
from py_runtime.folder.file_names import CONFIG

Json = dict[str, Any]
MOST = {
    "vocab_size": 1 << 22,
    "hidden_size": limits.MAX_WIDTH,
    "intermediate_size": limits.MAX_HIDDEN,
    "num_hidden_layers": limits.MAX_LAYERS,
    "num_attention_heads": limits.MAX_HEADS,
    "max_position_embeddings": limits.MAX_CONTEXT,
}
EPSILONS, SCALARS = (1e-12, 1e-1), (1e-3, 1e6)
ACTIVATIONS = ("silu", "gelu_pytorch_tanh")
MAX_PERIOD, MAX_DEEP = 1 << 10, 1 << 6
HIDDEN = ("intermediate_size", 0, limits.MAX_HIDDEN)


@dataclass(frozen=True)
class TextForm:
    """A family's decoder: what transformers takes where a config.json is silent."""

    sizes: tuple[int, ...]  # in the order of MOST
    kv_heads: int | None = None  # None: as many as heads
    head_dim: int | None = None  # None: what heads share evenly
    eps: float = 1e-6
    theta: float = 10_000.0
    act: str = "silu"
    more: Callable[[Json, Json], Json] = field(default=lambda given, whole: {})


def _gemma3(given: Json, whole: Json) -> Json:
    """Return which layers slide, and the rotary positions of both kinds."""
    layers = given["num_hidden_layers"]
    period = _count(given, "sliding_window_pattern", 6, MAX_PERIOD)
    types = [FULL if (number + 1) % period == 0 else SLIDING for number in range(layers)]
    rope = given.get("rope_parameters")
    rope = rope if isinstance(rope, dict) else {}
    full = rope.get(FULL) or given.get("rope_scaling") or {}
    sliding = rope.get(SLIDING) or {}
    if not isinstance(full, dict) or not isinstance(sliding, dict):
        raise fault(f"rope_parameters is {short(rope)}")
    local = {"rope_theta": given.get("rope_local_base_freq", 10_000.0), **sliding}
    return {
        "layer_types": given.get("layer_types") or types,
        "sliding_window": _count(given, "sliding_window", 4096, limits.MAX_CONTEXT),
        "query_pre_attn_scalar": _number(given, "query_pre_attn_scalar", 256, SCALARS),
        "rope_parameters": {
            FULL: _rope({"rope_parameters": full, "rope_theta": given.get("rope_theta", 1e6)}, 1e6),
            SLIDING: _rope({"rope_parameters": local}, 10_000.0),
        },
    }


def _gemma4(given: Json, whole: Json) -> Json:
    """Return which layers slide, and how their heads and MLPs differ from those of full ones."""
    if given.get("enable_moe_block") or given.get("attention_k_eq_v"):
        raise fault("it has experts, or values that are keys")
    if given.get("use_bidirectional_attention"):
        raise fault("use_bidirectional_attention is set")
    layers, period = given["num_hidden_layers"], 5
    types = [FULL if (number + 1) % period == 0 else SLIDING for number in range(layers)]
    types = given.get("layer_types") or [*types[:-1], FULL]
    apart = given.get("per_layer_config") or {}
    if not isinstance(apart, dict) or not all(isinstance(each, dict) for each in apart.values()):
        raise fault(f"per_layer_config is {short(apart)}")
    words = gemma4_checkpoint_words({**given, "layer_types": types})
    rope = given.get("rope_parameters")
    rope = rope if isinstance(rope, dict) else {}
    usual = {"rope_type": PROPORTIONAL, "partial_rotary_factor": 0.25, "rope_theta": 1e6}
    sharing = given.get("num_kv_shared_layers")
    return {
        "layer_types": types,
        "global_head_dim": _count({**given, **words}, "global_head_dim", 512, limits.MAX_HEAD_DIM),
        "num_kv_shared_layers": 0 if sharing is None else sharing,
        "use_double_wide_mlp": given.get("use_double_wide_mlp") is True,
        "vocab_size_per_layer_input": given["vocab_size"],
        "hidden_size_per_layer_input": given.get("hidden_size_per_layer_input", 256) or 0,
        "sliding_window": _count(given, "sliding_window", 512, limits.MAX_CONTEXT),
        "final_logit_softcapping": given.get("final_logit_softcapping"),
        "rope_parameters": {
            FULL: _rope({"rope_parameters": {**usual, **(rope.get(FULL) or {})}}, 1e6),
            SLIDING: _rope({"rope_parameters": rope.get(SLIDING) or {}}, 10_000.0),
        },
    }


def _qwen3_vl(given: Json, whole: Json) -> Json:
    tower = whole.get("vision_config")
    indexes = tower.get("deepstack_visual_indexes", (8, 16, 24)) if isinstance(tower, dict) else ()
    if not isinstance(indexes, list | tuple) or len(indexes) > MAX_DEEP:
        raise fault(f"deepstack_visual_indexes is {short(indexes)}")
    rope = {**given["rope_parameters"], "mrope_interleaved": True}
    return {DEEP: len(indexes), "rope_parameters": {"mrope_section": [24, 20, 20], **rope}}


def _qwen2_5_vl(given: Json, whole: Json) -> Json:
    if given.get("use_sliding_window"):
        raise fault("use_sliding_window is true")
    rope = given["rope_parameters"]
    return {"sliding_window": None, "rope_parameters": {"mrope_section": [16, 24, 24], **rope}}


def _lfm2(given: Json, whole: Json) -> Json:
    """Return which layers are convolutions, and what its own keys say."""
    eps = _number(given, "norm_eps", given["rms_norm_eps"], EPSILONS)
    words = lfm2_words({**given, "norm_eps": eps})
    layers, width = given["num_hidden_layers"], words["intermediate_size"]
    has_attention = given.get("full_attn_idxs")
    has_attention = range(layers) if has_attention is None else has_attention
    if not isinstance(has_attention, list | tuple | range):
        raise fault(f"full_attn_idxs is {short(has_attention)}")
    types = [FULL if number in has_attention else CONV for number in range(layers)]
    return {
        **words,
        "intermediate_size": _count({"intermediate_size": width}, *HIDDEN),
        "layer_types": given.get("layer_types") or types,
        "conv_L_cache": _count(given, "conv_L_cache", 3, limits.MAX_TAPS),
    }


FORMS = {
    "llama": TextForm((32_000, 4096, 11_008, 32, 32, 2048), eps=1e-5),
    "gemma3_text": TextForm(
        (262_208, 2304, 9216, 26, 8, 131_072),
        kv_heads=4,
        head_dim=256,
        act="gelu_pytorch_tanh",
        more=_gemma3,
    ),
    "gemma4_text": TextForm(
        (262_144, 2304, 9216, 30, 8, 131_072),
        kv_heads=4,
        head_dim=256,
        act="gelu_pytorch_tanh",
        more=_gemma4,
    ),
    "qwen2_5_vl_text": TextForm(
        (152_064, 8192, 29_568, 80, 64, 32_768),
        kv_heads=8,
        eps=1e-5,
        theta=1e6,
        more=_qwen2_5_vl,
    ),
    "qwen3_vl_text": TextForm(
        (151_936, 4096, 22_016, 32, 32, 128_000), head_dim=128, theta=500_000.0, more=_qwen3_vl
    ),
    "lfm2": TextForm(
        (65_536, 2560, 12_288, 32, 32, 128_000), kv_heads=8, eps=1e-5, theta=1e6, more=_lfm2
    ),
}
TWO_ROPES = ("gemma3_text", "gemma4_text")  # one for layers that slide
# Families whose older files have the decoder's sizes beside the tower's.
WITHOUT_HALVES = ("qwen2_5_vl",)
OF_WHOLE = {
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "lfm2_vl": "lfm2",
}


def text_values(whole: Json, is_tied: bool) -> Json:
    """Return what the decoder's own config.json would say, whole."""
    given = whole.get("text_config")
    if not isinstance(given, dict):
        given = whole if whole.get("model_type") in WITHOUT_HALVES else {}
    usual = OF_WHOLE.get(str(whole.get("model_type")), "llama")
    kind = given.get("model_type", usual)
    kind = usual if given is whole else kind
    if kind not in FORMS or kind != usual:
        raise fault(f"text_config.model_type is {short(kind)}")
    form = FORMS[kind]
    act = given.get("hidden_activation") or given.get("hidden_act") or form.act
    if act != form.act:
        raise fault(f"text_config.hidden_act is {short(act)}")
    values = {**given, "model_type": kind, "tie_word_embeddings": is_tied}
    for (key, most), default in zip(MOST.items(), form.sizes, strict=True):
        values[key] = _count(given, key, default, most)
    heads, width = values["num_attention_heads"], values["hidden_size"]
    own = form.head_dim or max(1, width // heads)
    values["num_key_value_heads"] = _count(
        given, "num_key_value_heads", form.kv_heads or heads, heads
    )
    values["head_dim"] = _count(given, "head_dim", own, limits.MAX_HEAD_DIM)
    if heads % values["num_key_value_heads"]:
        raise fault(f"{heads} heads do not share {values['num_key_value_heads']} keys evenly")
    values["rms_norm_eps"] = _number(given, "rms_norm_eps", form.eps, EPSILONS)
    if kind not in TWO_ROPES:
        values["rope_parameters"] = _rope(given, form.theta)
    return {**values, **form.more(values, whole)}


def _rope(given: Mapping[str, Any], usual: float) -> Json:
    found = given.get("rope_parameters") or given.get("rope_scaling") or {}
    if not isinstance(found, dict):
        raise fault(f"rope_parameters is {short(found)}")
    kind = found.get("rope_type", found.get("type", "default"))
    kind = "default" if kind == "mrope" else kind
    if kind not in ROPE_TYPES:
        raise fault(f"rope_type is {short(kind)}")
    theta = _number(found if "rope_theta" in found else given, "rope_theta", usual, limits.THETAS)
    return {**found, "rope_type": kind, "rope_theta": theta}


def _count(given: Mapping[str, Any], key: str, default: int, most: int) -> int:
    found = given.get(key)
    found = default if found is None else found
    if type(found) is not int or not 1 <= found <= most:
        raise fault(f"text_config.{key} is {short(found)}, not an integer from 1 to {most}")
    return found


def _number(
    given: Mapping[str, Any], key: str, default: float, bounds: tuple[float, float]
) -> float:
    found = given.get(key, default)
    if type(found) not in (int, float) or not bounds[0] <= found <= bounds[1]:
        raise fault(f"text_config.{key} is {short(found)}")
    return float(found)


def fault(text: str) -> ModelError:
    """Return the error of a config.json whose model cannot be run."""
    return ModelError(f"{CONFIG}: {text}, which is not supported", "get a GGUF file of this model")
