"""GGUF names of the tensors that the decoder knows by their names in Hugging Face checkpoints.

Families that depart from them say so in their files, in py_runtime/decoder/families.
"""

from py_runtime.decoder.config import BEFORE, DecoderConfig
from py_runtime.decoder.tensors import (
    CHOICE,
    EXPERTS,
    HEAD_EMBEDDING,
    HEAD_IN,
    HEAD_NORM,
    HEAD_STATE,
    LAYER_SCALAR,
    PER_LAYER_GATE,
    PER_LAYER_IN,
    PER_LAYER_IN_NORM,
    PER_LAYER_NORM,
    PER_LAYER_OUT,
    PER_LAYER_TABLE,
    ROUTER,
    SHARED,
    SINKS,
    expected_shapes,
)

GATES = "attn_q gates"  # which files have in one tensor with the queries
OF_A_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.g_proj": GATES,
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "conv.in_proj": "shortconv.in_proj",
    "conv.conv": "shortconv.conv",
    "conv.out_proj": "shortconv.out_proj",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.dt": "ssm_dt",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
    "mamba.in_proj": "ssm_in",
    "mamba.conv1d": "ssm_conv1d",
    "mamba.dt": "ssm_dt",
    "mamba.norm": "ssm_norm",
    "mamba.out_proj": "ssm_out",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    ROUTER: "ffn_gate_inp",
    f"{EXPERTS}.gate_proj": "ffn_gate_exps",
    f"{EXPERTS}.up_proj": "ffn_up_exps",
    f"{EXPERTS}.down_proj": "ffn_down_exps",
    f"{SHARED}.gate_proj": "ffn_gate_shexp",
    f"{SHARED}.up_proj": "ffn_up_shexp",
    f"{SHARED}.down_proj": "ffn_down_shexp",
    PER_LAYER_GATE: "inp_gate",
    PER_LAYER_OUT: "proj",
    PER_LAYER_NORM: "post_norm",
    LAYER_SCALAR: "layer_output_scale",
    HEAD_EMBEDDING: "nextn.enorm",
    HEAD_STATE: "nextn.hnorm",
    HEAD_IN: "nextn.eh_proj",
    HEAD_NORM: "nextn.shared_head_norm",
}
# Names that differ also in their endings (.weight, .bias), which those above keep.
WHOLE_NAMES = {
    "linear_attn.decay.weight": "ssm_a",
    "mamba.decay.weight": "ssm_a",
    "mamba.skip.weight": "ssm_d",
    CHOICE: "exp_probs_b.bias",
    SINKS: "attn_sinks.weight",
}
# Where norms stand only ahead of attention and of the MLP, checkpoints name the second one after
# its place: after attention.
AHEAD = {"post_attention_layernorm": "ffn_norm"}
OF_THE_MODEL = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    PER_LAYER_TABLE: "per_layer_token_embd",
    PER_LAYER_IN: "per_layer_model_proj",
    PER_LAYER_IN_NORM: "per_layer_proj_norm",
}
# Some files have these even for layers that share another layer's keys and values: unused there.
OF_ITS_OWN_KEYS = ("attn_k", "attn_v", "attn_k_norm")
FREQUENCIES, SHORT_FACTORS, LONG_FACTORS = (
    f"rope_{part}.weight" for part in ("freqs", "factors_short", "factors_long")
)
ROPE_FACTORS = (FREQUENCIES, SHORT_FACTORS, LONG_FACTORS)


def gguf_names(config: DecoderConfig) -> dict[str, str]:
    """Return the GGUF names of all tensors that the decoder needs, by the decoder's names.

    An example: layers.0.mlp.up_proj.weight is blk.0.ffn_up.weight.
    """
    return {name: _gguf_name(name, config) for name in expected_shapes(config)}


def gguf_owner(owner: str, config: DecoderConfig) -> str:
    """Return what files call the owner of a weight: mlp.up_proj, of a layer, is ffn_up."""
    if owner in OF_THE_MODEL:
        return OF_THE_MODEL[owner]
    is_ahead = config.norms.place == BEFORE and owner in AHEAD
    return AHEAD[owner] if is_ahead else OF_A_LAYER[owner]


def _gguf_name(name: str, config: DecoderConfig) -> str:
    owner, _, part = name.rpartition(".")
    if not owner.startswith("layers."):
        return f"{gguf_owner(owner, config)}.{part}"
    _, number, inner = owner.split(".", 2)
    whole = f"{inner}.{part}"
    if whole in WHOLE_NAMES:
        return f"blk.{number}.{WHOLE_NAMES[whole]}"
    return f"blk.{number}.{gguf_owner(inner, config)}.{part}"


def is_rotated(name: str) -> bool:
    """Tell whether these are weights or biases of q or k, whose rows converters reorder."""
    return ".q_proj." in name or ".k_proj." in name
