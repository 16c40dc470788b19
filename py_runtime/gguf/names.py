"""What GGUF calls the tensors that the decoder knows by their names in Hugging Face checkpoints."""

OF_A_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
OF_THE_MODEL = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
ROPE_FACTORS = "rope_freqs.weight"


def gguf_name(name: str) -> str:
    """layers.0.mlp.up_proj.weight is blk.0.ffn_up.weight."""
    owner, _, part = name.rpartition(".")
    if owner.startswith("layers."):
        _, number, inner = owner.split(".", 2)
        return f"blk.{number}.{OF_A_LAYER[inner]}.{part}"
    return f"{OF_THE_MODEL[owner]}.{part}"


def is_rotated(name: str) -> bool:
    """Whether these are weights or biases of queries or keys, whose rows converters reorder."""
    return ".q_proj." in name or ".k_proj." in name
