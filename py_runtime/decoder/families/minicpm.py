"""MiniCPM: a Granite that has other words for its multipliers."""

from math import sqrt

from py_runtime.decoder.families import granite
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.words import Words


def multipliers(values: Words) -> Words:
    """Compute Granite's multipliers from a config.json of MiniCPM's own code."""
    if "scale_emb" not in values:
        return {}
    layers, width = values["num_hidden_layers"], values["hidden_size"]
    head_dim = width // values["num_attention_heads"]
    return {
        "embedding_multiplier": values["scale_emb"],
        "residual_multiplier": values.get("scale_depth", sqrt(layers)) / sqrt(layers),
        "logits_scaling": width / values.get("dim_model_base", width),
        "attention_multiplier": head_dim**-0.5,
    }


def gguf_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return the multipliers, of which old files have none."""
    defaults = {
        "embedding_multiplier": 12.0,
        "residual_multiplier": 1.4 / sqrt(values["num_hidden_layers"]),
        "logits_scaling": values["hidden_size"] / 256,
    }
    return defaults | granite.gguf_words(keys, values, rope)


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="minicpm",
            known_as="MiniCPM",
            checkpoint=CheckpointForm(read_as="granite", words=multipliers),
            gguf=GgufForm(
                architecture="minicpm",
                pairs_side_by_side=True,
                has_factor_tensors=True,
                computed=tuple(granite.MULTIPLIERS),
                words=gguf_words,
            ),
        ),
    ),
)
