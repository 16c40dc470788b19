"""Checkpoints in the words of transformers and of the decoder: keys of configs, names of tensors.

Where a family differs from the others, its own file in py_runtime/decoder/families says how.
"""

from collections.abc import Callable

from export.errors import ExportError
from py_runtime.base.model_errors import ModelError
from py_runtime.decoder.families import BY_MODEL_TYPE
from py_runtime.decoder.family import CheckpointForm
from py_runtime.decoder.words import Words

HEAD = "lm_head"
# Where the decoder lies in a checkpoint; models that see have it deeper.
PREFIXES = (
    *("model.", "model.language_model.", "language_model.model.", "transformer.", "backbone."),
    "",
)


def in_known_words(values: Words) -> Words:
    """Return a config.json with the keys that transformers has for them."""
    model_type = values["model_type"]
    form = BY_MODEL_TYPE[model_type].checkpoint
    known = {form.keys.get(key, key): value for key, value in values.items()}
    known["model_type"] = form.read_as or model_type
    known.pop("time_step_limit", None)  # of Mamba; JSON cannot write it
    return known | _asked(form.words, values)


def in_own_words(whole: Words) -> Words:
    """Return a config that transformers made as py_runtime/decoder/config_json.py reads it."""
    form = BY_MODEL_TYPE[whole["model_type"]].checkpoint
    own = whole | _asked(form.words_after, whole)
    own.pop("per_layer_config", None)
    return own


def _asked(words: Callable[[Words], Words], values: Words) -> Words:
    try:
        return words(values)
    except ModelError as error:
        raise ExportError(str(error)) from None


def stored_names(form: CheckpointForm, name: str) -> list[str]:
    """Return the names that a checkpoint may have for a tensor of the decoder."""
    if name.rpartition(".")[0] == HEAD:
        return [name, f"language_model.{name}"]
    stored = form.stored_name(name)
    return [f"{prefix}{stored}" for prefix in PREFIXES]
