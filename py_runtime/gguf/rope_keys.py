"""A GGUF file's rotary positions in the words of a config.json."""

from typing import Any

from py_runtime.decoder.limits import MAX_CONTEXT, SCALES, THETAS
from py_runtime.gguf.errors import shown
from py_runtime.gguf.keys import Keys


def read_rope(keys: Keys, long_factors: bool = False) -> dict[str, Any]:
    """Read all keys that llama.cpp's converters write, by the names that transformers has."""
    rope: dict[str, Any] = {
        "rope_type": "default",
        "rope_theta": keys.number("rope.freq_base", *THETAS, default=10000.0),
    }
    kind = keys.text("rope.scaling.type", "none")
    if "rope.scaling.attn_factor" in keys:
        rope["attn_factor"] = keys.number("rope.scaling.attn_factor", *SCALES)
    if long_factors and kind in ("none", "longrope"):  # which are tensors, here or not
        return rope | {"original_max_position_embeddings": _original(keys)}
    if kind == "none":
        return rope
    if kind not in ("linear", "yarn"):
        raise keys.unsupported("rope.scaling.type", f"is {shown(kind)}")
    rope |= {"rope_type": kind, "factor": keys.number("rope.scaling.factor", *SCALES)}
    if kind == "yarn":
        rope |= _yarn(keys)
    return rope


def _yarn(keys: Keys) -> dict[str, Any]:
    yarn: dict[str, Any] = {"original_max_position_embeddings": _original(keys)}
    for key, name in (
        ("yarn_attn_factor", "attention_factor"),
        ("yarn_beta_fast", "beta_fast"),
        ("yarn_beta_slow", "beta_slow"),
        ("yarn_log_multiplier", "mscale_all_dim"),
    ):
        if f"rope.scaling.{key}" in keys:
            yarn[name] = keys.number(f"rope.scaling.{key}", *SCALES)
    if "mscale_all_dim" in yarn:
        yarn["mscale"] = 1.0  # as llama.cpp takes it
    if "rope.scaling.yarn_ext_factor" in keys:
        extrapolation = keys.number("rope.scaling.yarn_ext_factor", -1.0, SCALES[1])
        if extrapolation >= 0:  # less means that it is not set
            yarn["extrapolation_factor"] = extrapolation
    return yarn


def _original(keys: Keys) -> int:
    trained = keys.integer("context_length", 1, MAX_CONTEXT)
    return keys.integer("rope.scaling.original_context_length", 1, MAX_CONTEXT, default=trained)
