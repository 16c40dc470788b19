"""Checkpoints of their own code: what their config.json and their tensors are called elsewhere."""

import re
from collections.abc import Mapping
from math import sqrt
from typing import Any

from export.errors import ExportError
from py_runtime.base.short_texts import short
from py_runtime.decoder.config_json import FULL
from py_runtime.decoder.limits import MAX_HIDDEN

# The class of transformers that a config without one of its own is read as.
READ_AS = {"minicpm": "granite", "exaone": "llama"}
EXAONE_KEYS = {
    "num_layers": "num_hidden_layers",
    "layer_norm_epsilon": "rms_norm_eps",
    "activation_function": "hidden_act",
}
EXAONE_TENSORS = {
    "embed_tokens": "wte",
    "norm": "ln_f",
    "input_layernorm": "ln_1",
    "post_attention_layernorm": "ln_2",
    "self_attn.q_proj": "attn.attention.q_proj",
    "self_attn.k_proj": "attn.attention.k_proj",
    "self_attn.v_proj": "attn.attention.v_proj",
    "self_attn.o_proj": "attn.attention.out_proj",
    "mlp.gate_proj": "mlp.c_fc_0",
    "mlp.up_proj": "mlp.c_fc_1",
    "mlp.down_proj": "mlp.c_proj",
}
LFM2_TENSORS = {
    "norm": "embedding_norm",
    "input_layernorm": "operator_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.o_proj": "self_attn.out_proj",
    "self_attn.q_norm": "self_attn.q_layernorm",
    "self_attn.k_norm": "self_attn.k_layernorm",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.up_proj": "feed_forward.w3",
    "mlp.down_proj": "feed_forward.w2",
}
# A star stands for an expert's number.
LFM2_MOE_TENSORS = LFM2_TENSORS | {
    "mlp": "feed_forward",
    "mlp.gate": "feed_forward.gate",
    "mlp.experts.*.gate_proj": "feed_forward.experts.*.w1",
    "mlp.experts.*.up_proj": "feed_forward.experts.*.w3",
    "mlp.experts.*.down_proj": "feed_forward.experts.*.w2",
}
GRANITE_MOE_TENSORS = {
    "mlp.gate": "block_sparse_moe.router.layer",
    "mlp.experts.gate_proj": "block_sparse_moe.input_linear",
    "mlp.experts.up_proj": "block_sparse_moe.input_linear",
    "mlp.experts.down_proj": "block_sparse_moe.output_linear",
}
# By model type: what differs from the decoder's own names. EXAONE calls its layers otherwise, too.
OTHER_TENSORS = {
    "exaone": EXAONE_TENSORS,
    "lfm2": LFM2_TENSORS,
    "lfm2_moe": LFM2_MOE_TENSORS,
    "gpt_oss": {"mlp.gate": "mlp.router"},
    "granitemoe": GRANITE_MOE_TENSORS,
    "granitemoeshared": GRANITE_MOE_TENSORS,
    "qwen3_5_text": {"self_attn.g_proj": "self_attn.q_proj"},
}
# Those whose names have no end.
WHOLE_NAMES = {
    "linear_attn.decay.weight": "linear_attn.A_log",
    "linear_attn.dt.bias": "linear_attn.dt_bias",
    "layer_scalar.weight": "layer_scalar",
}
LAYERS = {"exaone": "h"}
MAX_TIMES, MAX_STEP = 1000, MAX_HIDDEN  # of an MLP's width
HEAD = "lm_head"
# Where the decoder lies in a checkpoint; models that see have it deeper.
PREFIXES = ("model.", "model.language_model.", "language_model.model.", "transformer.", "")


def in_known_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """A config.json with the keys that transformers has for them."""
    model_type = values["model_type"]
    known = {**values, "model_type": READ_AS.get(model_type, model_type)}
    known.pop("time_step_limit", None)  # of layers without attention; JSON cannot write it
    if model_type == "exaone":
        known = {EXAONE_KEYS.get(key, key): value for key, value in known.items()}
    if model_type == "minicpm" and "scale_emb" in values:
        layers, width = values["num_hidden_layers"], values["hidden_size"]
        head_dim = width // values["num_attention_heads"]
        known |= {
            "embedding_multiplier": values["scale_emb"],
            "residual_multiplier": values.get("scale_depth", sqrt(layers)) / sqrt(layers),
            "logits_scaling": width / values.get("dim_model_base", width),
            "attention_multiplier": head_dim**-0.5,
        }
    if model_type == "lfm2":
        known |= _of_lfm2(values)
    if model_type == "lfm2_moe":
        eps = values.get("norm_eps", values.get("rms_norm_eps", 1e-5))
        known |= {"rms_norm_eps": eps, "hidden_act": "silu"}
    return known


def in_own_words(whole: Mapping[str, Any]) -> dict[str, Any]:
    """What transformers makes of a config.json, as the table of families has it."""
    own = dict(whole)
    layers = own.pop("per_layer_config", None) or {}
    if own.get("model_type") == "gemma4_text" and layers:
        widths = {layer.get("head_dim", own["head_dim"]) for layer in layers.values()}
        full = [str(at) for at, kind in enumerate(own["layer_types"]) if kind == FULL]
        if len(widths) > 1 or {*map(str, layers)} != {*full}:
            raise ExportError("its layers have heads of more than two widths")
        own["global_head_dim"] = widths.pop()
    if own.get("model_type") == "granitemoehybrid" and own.get("num_local_experts"):
        own["model_type"] = "granitemoeshared"  # but for its layers of Mamba, which are refused
    return own


def _of_lfm2(values: Mapping[str, Any]) -> dict[str, Any]:
    """The width that its MLPs really have, and what is called otherwise or goes without saying."""
    hidden = values.get("block_ff_dim") or values.get("intermediate_size")
    if type(hidden) is int and values.get("block_auto_adjust_ff_dim", True):
        hidden = 2 * hidden // 3
        multiplier = values.get("block_ffn_dim_multiplier", 1.0)
        step = values.get("block_multiple_of", 256)
        if multiplier is not None:
            if not isinstance(multiplier, int | float) or not 0 < multiplier < MAX_TIMES:
                raise ExportError(f"block_ffn_dim_multiplier is {short(multiplier)}")
            if type(step) is not int or not 0 < step < MAX_STEP or hidden > MAX_HIDDEN:
                raise ExportError(f"block_multiple_of is {short(step)} for {short(hidden)} columns")
            hidden = -(-int(multiplier * hidden) // step) * step
    return {
        "intermediate_size": hidden,
        "block_ff_dim": hidden,
        "block_auto_adjust_ff_dim": False,
        "rms_norm_eps": values.get("norm_eps", values.get("rms_norm_eps", 1e-5)),
        "hidden_act": "silu",
    }


def stored_names(model_type: str, name: str) -> list[str]:
    """What a checkpoint may call a tensor of the decoder, without what fuses it with others."""
    owner, _, part = name.rpartition(".")
    if owner == HEAD:
        return [name, f"language_model.{name}"]
    others = OTHER_TENSORS.get(model_type, {})
    if owner.startswith("layers."):
        _, number, inner = owner.split(".", 2)
        layers = LAYERS.get(model_type, "layers")
        starred = re.sub(r"(?<=experts\.)\d+", "*", inner)
        stored_inner = others.get(starred, starred)
        if starred != inner:
            stored_inner = stored_inner.replace("*", inner.split(".")[2])
        owner = f"{layers}.{number}.{stored_inner}"
    else:
        owner = others.get(owner, owner)
    stored = f"{owner}.{part}"
    for whole, without_end in WHOLE_NAMES.items():
        stored = stored.replace(whole, without_end)
    return [f"{prefix}{stored}" for prefix in PREFIXES]
