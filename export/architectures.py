"""A Hugging Face config.json as the one decoder's config, and its rotary tables."""

from typing import Any

import numpy as np
from transformers import AutoConfig

from export.checkpoint_words import in_known_words, in_own_words
from export.errors import ExportError
from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder import config_json
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.config_json import ACTIVATIONS, ROPE_TYPES
from py_runtime.decoder.families import BY_MODEL_TYPE, SUPPORTED
from py_runtime.decoder.limits import (
    MAX_CONTEXT,
    MAX_EXPERTS,
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_KEYS,
    MAX_LAYERS,
    MAX_TAPS,
    MAX_USED,
    MAX_WIDTH,
)
from py_runtime.decoder.rotary import Floats

# The largest that a config may claim.
COUNTS = {
    "vocab_size": 1 << 22,
    "hidden_size": MAX_WIDTH,
    "intermediate_size": MAX_HIDDEN,
    "num_hidden_layers": MAX_LAYERS,
    "num_attention_heads": MAX_HEADS,
    "num_key_value_heads": MAX_HEADS,
    "head_dim": MAX_HEAD_DIM,
    "global_head_dim": MAX_HEAD_DIM,
    "max_position_embeddings": MAX_CONTEXT,
    "linear_conv_kernel_dim": MAX_TAPS,
    "linear_key_head_dim": MAX_KEYS,
    "linear_value_head_dim": MAX_HEAD_DIM,
    "linear_num_key_heads": MAX_HEADS,
    "linear_num_value_heads": MAX_HEADS,
    "num_experts": MAX_EXPERTS,
    "num_experts_per_tok": MAX_USED,
    "moe_intermediate_size": MAX_HIDDEN,
}
NUMBERS = ("rms_norm_eps", "rope_theta")
MAX_NUMBER = 1e30  # of these


def read_config(given: dict[str, Any]) -> dict[str, Any]:
    """Return a config.json, whole, as transformers reads it; refuse what the decoder cannot be.

    Of a model that sees or hears, too, it is the part that writes.
    """
    values = _text_part(given)
    architecture = values.get("model_type")
    if not isinstance(architecture, str) or architecture not in BY_MODEL_TYPE:
        raise ExportError(
            f"the architecture '{architecture}' is not supported; these are: {SUPPORTED}"
        )
    how = given.get("quantization_config") or values.get("quantization_config")
    blocks = isinstance(how, dict) and how.get("quant_method") == "mxfp4"
    mixture = BY_MODEL_TYPE[architecture].mixture
    if how and not (blocks and mixture and mixture.interleaved):
        raise ExportError("this checkpoint is quantised already; give the float one, or a GGUF")
    values = in_known_words(values)
    values.pop("quantization_config", None)
    _check_values(values)
    try:
        whole = AutoConfig.for_model(**values).to_dict() | {"model_type": architecture}
    except Exception as error:  # transformers validates with many kinds of its own
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ExportError(f"config.json cannot be read: {reason}") from None
    whole = in_own_words(whole)
    whole.setdefault("tie_word_embeddings", False)
    activation = whole.get("hidden_activation") or whole.get("hidden_act")
    if ACTIVATIONS.get(str(activation)) != BY_MODEL_TYPE[architecture].activation:
        raise ExportError(f"the activation '{activation}' is not supported for '{architecture}'")
    for rope in config_json.ropes(whole).values():
        rope_type = rope["rope_type"]
        if rope_type not in ROPE_TYPES:
            raise ExportError(
                f"the rope type '{rope_type}' is not supported; these are: {', '.join(ROPE_TYPES)}"
            )
    return whole


def _text_part(given: dict[str, Any]) -> dict[str, Any]:
    text = given.get("text_config")
    if not isinstance(text, dict) or given.get("model_type") in BY_MODEL_TYPE:
        return given
    return text


def _check_values(values: dict[str, Any]) -> None:
    for name, most in COUNTS.items():
        value = values.get(name)
        if value is None:  # transformers has a default for it
            continue
        if type(value) is not int or not 1 <= value <= most:
            raise ExportError(f"{name} must be an integer from 1 to {most}, got {short(value)}")
    rope = values.get("rope_parameters") or values.get("rope_scaling")
    for given in (values, rope if isinstance(rope, dict) else {}):
        for name in NUMBERS:
            value = given.get(name)
            if value is None:
                continue
            if not isinstance(value, int | float) or not 0 < value <= MAX_NUMBER:
                raise ExportError(f"{name} must be a number above 0, got {short(value)}")


def decoder_config(values: dict[str, Any], context: int | None) -> DecoderConfig:
    """Return the decoder's config for `context` positions.

    None stands for a default that fits most users' GPUs. Raise ExportError if the model cannot have
    that context.
    """
    shortest, longest = config_json.MIN_CONTEXT, values["max_position_embeddings"]
    if context is not None and not shortest <= context <= longest:
        raise ExportError(
            f"--max-seq-len {context} is outside {shortest} to {longest} of this model"
        )
    try:
        return config_json.decoder_config(values, context)
    except ModelError as error:
        raise ExportError(str(error)) from None


def rotary_tables(
    values: dict[str, Any], context: int, factors: np.ndarray | None = None
) -> dict[str, Floats]:
    """Return the tables by name, each [context, rotated dims], scaled as the config says.

    GGUF files may bring `factors`, which divide the frequencies.
    """
    try:
        with np.errstate(all="ignore"):
            tables = config_json.rotary_tables(values, decoder_config(values, context), factors)
    except ExportError:
        raise
    except Exception as error:  # whatever a config may say of its rope
        raise ExportError(f"rotary positions cannot be computed: {error}") from None
    if not all(np.isfinite(table).all() for table in tables.values()):
        raise ExportError("rotary positions are not finite: the config's rope parameters are wrong")
    return tables
