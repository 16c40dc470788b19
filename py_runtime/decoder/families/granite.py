"""Granite 3 and 4: embeddings, residuals, scores and logits have multipliers; some have experts.

A Granite 4 is a Granite 3 whose MLP has the name of a shared one, and with experts it is a Granite
that has a shared one beside them. Of Granite 4 H, most layers are Mamba-2.
"""

from py_runtime.decoder.config import MAMBA
from py_runtime.decoder.conventions import JSON_AFTER_TOKEN, JSON_IN_TAGS
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys, routing
from py_runtime.decoder.limits import MAX_EXPERTS, MAX_HEADS, MAX_HIDDEN, SCALES
from py_runtime.decoder.mixtures import Mixture
from py_runtime.decoder.scans import check_steps, mamba_keys
from py_runtime.decoder.words import FULL, MAMBA_GROUPS, Words

# Keys of GGUF files → what config.json calls them.
MULTIPLIERS = {
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
    "attention.scale": "attention_multiplier",
}
LINEAR = "linear_attention"  # in layer_types
# In checkpoints all experts of a layer are one tensor, gate and up of an expert another's halves.
EXPERT_TENSORS = {
    "mlp.gate": "block_sparse_moe.router.layer",
    "mlp.experts.gate_proj": "block_sparse_moe.input_linear",
    "mlp.experts.up_proj": "block_sparse_moe.input_linear",
    "mlp.experts.down_proj": "block_sparse_moe.output_linear",
}


def gguf_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return the multipliers, and whether heads turn at all."""
    words: Words = {"attention_multiplier": values["head_dim"] ** -0.5}
    words |= {name: keys.number(key, *SCALES) for key, name in MULTIPLIERS.items() if key in keys}
    if not keys.flag("rope.scaling.finetuned", True):
        words["position_embedding_type"] = None
    return words


def gguf_words_with_experts(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Add experts, which are as wide as MLPs elsewhere, and one beside them, where there is one.

    Files of models without any may have this architecture, too.
    """
    words = gguf_words(keys, values, rope)
    if not keys.integer("expert_count", 0, MAX_EXPERTS, default=0):
        return words | {"model_type": "granite"}
    words |= routing(keys)
    shared = keys.integer("expert_shared_feed_forward_length", 0, MAX_HIDDEN, default=0)
    if not shared:
        return words
    return words | {"model_type": "granitemoeshared", "shared_intermediate_size": shared}


def gguf_hybrid_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Take layers without heads for keys and values for Mamba-2."""
    words = gguf_words_with_experts(keys, values, rope)
    layers = values["num_hidden_layers"]
    kv_heads = keys.integers("attention.head_count_kv", layers, 0, MAX_HEADS)
    if "num_local_experts" in words:
        words["model_type"] = "granitemoeshared"
    else:
        dense = {"num_local_experts": 0, "shared_intermediate_size": values["intermediate_size"]}
        words |= {"model_type": "granitemoehybrid", **dense}
    return {
        **words,
        **mamba_keys(keys),
        "layer_types": [FULL if heads else LINEAR for heads in kv_heads],
    }


def hybrid_words(values: Words) -> Words:
    """Check what is not computed."""
    check_steps(values)
    return {}


def hybrid_words_after(whole: Words) -> Words:
    """Take one with experts for the family that it is. All columns are normalised together.

    A GGUF file may say otherwise.
    """
    mixed = {"model_type": "granitemoeshared"} if whole.get("num_local_experts") else {}
    return {MAMBA_GROUPS: whole.get(MAMBA_GROUPS, 1), **mixed}


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="granite",
            known_as="Granite 3",
            gguf=GgufForm(
                architecture="granite",
                pairs_side_by_side=True,
                computed=tuple(MULTIPLIERS),
                words=gguf_words,
            ),
        ),
        Family(
            model_type="granitemoehybrid",
            known_as="Granite 4",
            checkpoint=CheckpointForm(
                fused={
                    "shared_mlp.input_linear": ("mlp.gate_proj", "mlp.up_proj"),
                    "shared_mlp.output_linear": ("mlp.down_proj",),
                },
                words=hybrid_words,
                words_after=hybrid_words_after,
            ),
            gguf=GgufForm(
                architecture="granitehybrid",
                pairs_side_by_side=True,
                computed=(*MULTIPLIERS, "expert_count"),
                words=gguf_hybrid_words,
            ),
            mixers={LINEAR: MAMBA},
        ),
        Family(
            model_type="granitemoe",
            known_as="Granite 3 with experts",
            checkpoint=CheckpointForm(tensors=EXPERT_TENSORS),
            gguf=GgufForm(
                architecture="granitemoe",
                pairs_side_by_side=True,
                computed=(*MULTIPLIERS, "expert_count"),
                words=gguf_words_with_experts,
            ),
            mixture=Mixture(stacked=True),
        ),
        Family(
            model_type="granitemoeshared",
            known_as="Granite with a shared expert",
            checkpoint=CheckpointForm(
                tensors=EXPERT_TENSORS,
                fused={
                    "shared_mlp.input_linear": ("shared_mlp.gate_proj", "shared_mlp.up_proj"),
                    "shared_mlp.output_linear": ("shared_mlp.down_proj",),
                },
            ),
            mixers={LINEAR: MAMBA},
            mixture=Mixture(stacked=True, has_shared=True),
        ),
    ),
    calls=(JSON_IN_TAGS, JSON_AFTER_TOKEN),  # since 3.1, and of 3.0
)
