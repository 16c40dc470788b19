"""Checkpoints of their own code: what their config.json and their tensors are called elsewhere."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

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
HEAD = "lm_head"
# Where the decoder lies in a checkpoint; models that see have it deeper.
PREFIXES = ("model.", "model.language_model.", "language_model.model.", "transformer.", "")


def in_known_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """A config.json with the keys that transformers has for them."""
    model_type = values["model_type"]
    known = {**values, "model_type": READ_AS.get(model_type, model_type)}
    known.pop("time_step_limit", None)  # of layers that are no attention; JSON cannot write it
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
    return known


def stored_names(model_type: str, name: str) -> list[str]:
    """What a checkpoint may call a tensor of the decoder, without what fuses it with others."""
    owner, _, part = name.rpartition(".")
    if owner == HEAD:
        return [name, f"language_model.{name}"]
    if model_type == "exaone":
        layer, _, inner = owner.removeprefix("layers.").partition(".")
        is_of_layer = owner.startswith("layers.")
        stored = EXAONE_TENSORS[inner if is_of_layer else owner]
        owner = f"h.{layer}.{stored}" if is_of_layer else stored
    return [f"{prefix}{owner}.{part}" for prefix in PREFIXES]
