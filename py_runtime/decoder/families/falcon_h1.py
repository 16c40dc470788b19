"""Falcon-H1: attention and Mamba-2 side by side in each layer, and multipliers of every part.

GGUF files hold matrices that are multiplied already; so do folders that the exporter writes.
"""

from py_runtime.base.model_errors import ModelError
from py_runtime.decoder.config import BESIDE
from py_runtime.decoder.conventions import JSON_IN_TAGS
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm, Runs
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.scans import check_steps, mamba_keys
from py_runtime.decoder.words import MAMBA_GROUPS, Words

HYBRID = "hybrid"  # in layer_types, which transformers does without
BIASES = ("attention_bias", "mlp_bias", "projectors_bias", "mamba_proj_bias")
TENSORS = {
    "norm": "final_layernorm",
    "post_attention_layernorm": "pre_ff_layernorm",
    **{f"mlp.{name}_proj": f"feed_forward.{name}_proj" for name in ("gate", "up", "down")},
}


def gguf_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return the sizes of the mixers; most models do without a norm in them."""
    words = mamba_keys(keys)
    groups = words[MAMBA_GROUPS] if values["mamba_rms_norm"] else 0
    return {
        **words,
        **_every_layer(values),
        MAMBA_GROUPS: groups,
        "mamba_d_ssm": words["mamba_n_heads"] * words["mamba_d_head"],
        "mamba_norm_before_gate": False,
    }


def checkpoint_words(values: Words) -> Words:
    """Check what is not computed."""
    check_steps(values)
    if any(values.get(name) for name in BIASES):
        raise ModelError("its matrices have biases, which is not supported", "get another model")
    if values.get("mamba_rms_norm") and values.get("mamba_norm_before_gate", True):
        raise ModelError(
            "its Mamba layers are normalised ahead of their gate, which is not supported",
            "get another model",
        )
    return {}


def words_after(whole: Words) -> Words:
    """Return the keys that others have."""
    head = whole["lm_head_multiplier"]
    if not head:
        raise ModelError("its logits are multiplied with 0", "get another model")
    groups = whole["mamba_n_groups"] if whole["mamba_rms_norm"] else 0
    return {MAMBA_GROUPS: groups, "logits_scaling": 1 / head, **_every_layer(whole)}


def multipliers(values: Words) -> dict[str, Runs]:
    """Return what each matrix of a layer is multiplied with, run by run of its rows."""
    c = values
    inner = c["mamba_n_heads"] * c["mamba_d_head"]
    grouped = c["mamba_n_groups"] * c["mamba_d_state"]
    projected = (inner, inner, grouped, grouped, c["mamba_n_heads"])  # gates, values, B, C, steps
    runs = zip(projected, c["ssm_multipliers"], strict=True)
    head_dim, width = c["head_dim"], c["hidden_size"]
    gate, down = c["mlp_multipliers"]
    queries, keys = (c[f"num_{name}_heads"] * head_dim for name in ("attention", "key_value"))
    ahead = c["attention_in_multiplier"]
    return {
        "mamba.in_proj": tuple((rows, own * c["ssm_in_multiplier"]) for rows, own in runs),
        "mamba.out_proj": ((width, c["ssm_out_multiplier"]),),
        "self_attn.q_proj": ((queries, ahead),),
        "self_attn.k_proj": ((keys, ahead * c["key_multiplier"]),),
        "self_attn.v_proj": ((keys, ahead),),
        "self_attn.o_proj": ((width, c["attention_out_multiplier"]),),
        "mlp.gate_proj": ((c["intermediate_size"], gate),),
        "mlp.down_proj": ((width, down),),
    }


def _every_layer(values: Words) -> Words:
    return {"layer_types": [HYBRID] * values["num_hidden_layers"]}


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="falcon_h1",
            known_as="Falcon-H1",
            checkpoint=CheckpointForm(
                tensors=TENSORS,
                keys={"layer_types": "types_of_layers"},  # transformers takes none
                words=checkpoint_words,
                words_after=words_after,
                multipliers=multipliers,
            ),
            gguf=GgufForm(architecture="falcon-h1", without_end=("ffn_norm",), words=gguf_words),
            mixers={HYBRID: BESIDE},
        ),
    ),
    calls=(JSON_IN_TAGS,),
)
