"""Nemotron-H: a layer is Mamba-2, attention without positions, or an MLP without a gate."""

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import short
from py_runtime.decoder.config import MAMBA, NOTHING, RELU_SQUARED
from py_runtime.decoder.conventions import JSON, THINK_TAGS, Convention, Markers
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.limits import MAX_HEADS, MAX_HIDDEN, MAX_LAYERS
from py_runtime.decoder.scans import check_steps, mamba_keys
from py_runtime.decoder.words import FULL, MAMBA_GROUPS, Words

LINEAR, MLP = "linear_attention", "mlp"  # in layer_types
PATTERNS = ("hybrid_override_pattern", "layers_block_type")
# Keys of config.json → what others call them.
KEYS = {
    "layers_block_type": "layer_types",
    "layer_norm_epsilon": "rms_norm_eps",
    "mlp_hidden_act": "hidden_act",
    "mamba_num_heads": "mamba_n_heads",
    "mamba_head_dim": "mamba_d_head",
    "ssm_state_size": "mamba_d_state",
    "n_groups": "mamba_n_groups",
    "conv_kernel": "mamba_d_conv",
    "use_conv_bias": "mamba_conv_bias",
    "use_bias": "mamba_proj_bias",
}
# The other way round, of those that a GGUF file gives.
OF_FILES = {
    own: name
    for name, own in KEYS.items()
    if own in ("layer_types", "rms_norm_eps") or own.startswith(("mamba_n_", "mamba_d_"))
}
PARTS = {
    "mamba": ("in_proj", "conv1d", "decay", "dt", "skip", "norm", "out_proj"),
    "self_attn": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "mlp": ("up_proj", "down_proj"),
}
TENSORS = {
    "embed_tokens": "embeddings",
    "norm": "norm_f",
    "input_layernorm": "norm",
    **{f"{owner}.{part}": f"mixer.{part}" for owner, parts in PARTS.items() for part in parts},
}
NO_POSITIONS: Words = {
    "position_embedding_type": None,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}

CALLS = Convention(
    rank=6,
    known_by=("<TOOLCALL>",),
    calls=(Markers("<TOOLCALL>", "</TOOLCALL>", JSON),),
    forced="<TOOLCALL>",
)


def gguf_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Tell the layers apart by what they have: heads for keys and values, an MLP, or neither."""
    layers = values["num_hidden_layers"]
    kv_heads = keys.integers("attention.head_count_kv", layers, 0, MAX_HEADS)
    widths = keys.integers("feed_forward_length", layers, 0, MAX_HIDDEN)
    return {
        **mamba_keys(keys),
        **NO_POSITIONS,
        "layer_types": [
            MLP if width else FULL if heads else LINEAR
            for heads, width in zip(kv_heads, widths, strict=True)
        ],
    }


def checkpoint_words(values: Words) -> Words:
    """Check what is not computed, and that there are not too many layers."""
    check_steps(values)
    for name in PATTERNS:
        pattern = values.get(name) or ()
        if not isinstance(pattern, str | list | tuple) or len(pattern) > MAX_LAYERS:
            raise ModelError(f"{name} is {short(pattern)}", "get another model")
    if values.get("mamba_hidden_act", "silu") != "silu":
        raise ModelError(
            f"mamba_hidden_act is {short(values['mamba_hidden_act'])}; only silu is supported",
            "get another model",
        )
    return {}


def words_after(whole: Words) -> Words:
    """Return the keys that others have. Columns are normalised by groups."""
    words = {own: whole[name] for name, own in KEYS.items()}
    layers = len(words["layer_types"])
    return {
        **words,
        **NO_POSITIONS,
        "num_hidden_layers": layers,
        MAMBA_GROUPS: whole["n_groups"],
    }


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="nemotron_h",
            known_as="Nemotron-H (dense)",
            checkpoint=CheckpointForm(
                tensors=TENSORS, keys=OF_FILES, words=checkpoint_words, words_after=words_after
            ),
            gguf=GgufForm(architecture="nemotron_h", words=gguf_words),
            mixers={LINEAR: MAMBA, MLP: NOTHING},
            one_part=True,
            activation=RELU_SQUARED,
        ),
    ),
    calls=(CALLS,),
    thoughts=(THINK_TAGS,),
)
