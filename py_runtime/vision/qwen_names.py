"""Names of the tensors of Qwen's towers: the engine's, and those of files."""

from collections.abc import Mapping

PATCHES, SECOND_FRAME = "patch_embedding", "patch_embedding_second.weight"
POSITIONS = "position_embedding.weight"
FIRST_NORM, SECOND_NORM, LAST_NORM = "input_layernorm", "pre_mlp_layernorm", "norm"
QUERIES, KEYS, VALUES, MIXED = (f"self_attn.{part}_proj" for part in "qkvo")
QKV, TURNED = (QUERIES, KEYS, VALUES), "self_attn.qkv_proj"  # each, and all as files may have them
GATE, UP, DOWN = (f"mlp.{part}_proj" for part in ("gate", "up", "down"))
MERGED, PROJECTED = "merger.first", "merger.second"
DEEP = "deepstack"

GGUF_NAMES = {
    PATCHES: "v.patch_embd",
    POSITIONS.removesuffix(".weight"): "v.position_embd",
    LAST_NORM: "v.post_ln",
    MERGED: "mm.0",
    PROJECTED: "mm.2",
}
GGUF_LAYERS, GGUF_PARTS = (
    "v.blk",
    {
        FIRST_NORM: "ln1",
        QUERIES: "attn_q",
        KEYS: "attn_k",
        VALUES: "attn_v",
        TURNED: "attn_qkv",
        MIXED: "attn_out",
        SECOND_NORM: "ln2",
        GATE: "ffn_gate",
        UP: "ffn_up",
        DOWN: "ffn_down",
    },
)
# Of Qwen2.5-VL and of Qwen3-VL.
CHECKPOINT_NAMES: Mapping[bool, Mapping[str, str]] = {
    False: {
        PATCHES: "patch_embed.proj",
        LAST_NORM: "merger.ln_q",
        MERGED: "merger.mlp.0",
        PROJECTED: "merger.mlp.2",
    },
    True: {
        PATCHES: "patch_embed.proj",
        POSITIONS.removesuffix(".weight"): "pos_embed",
        LAST_NORM: "merger.norm",
        MERGED: "merger.linear_fc1",
        PROJECTED: "merger.linear_fc2",
    },
}


def checkpoint_parts(is_new: bool) -> Mapping[str, str]:
    """Return what checkpoints call the tensors of a layer."""
    parts = {
        FIRST_NORM: "norm1",
        SECOND_NORM: "norm2",
        TURNED: "attn.qkv",
        MIXED: "attn.proj",
        # Split from the rows of one tensor, under names that none has.
        QUERIES: "attn.q",
        KEYS: "attn.k",
        VALUES: "attn.v",
    }
    return {**parts, UP: "mlp.linear_fc1", DOWN: "mlp.linear_fc2"} if is_new else parts
