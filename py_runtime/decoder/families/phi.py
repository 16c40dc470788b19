"""Phi-3, Phi-3.5 and Phi-4-mini: q, k and v are one tensor, and so are gate and up."""

from py_runtime.decoder.conventions import JSON_AFTER_TOKEN, THINK_TAGS
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import windows_everywhere

QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
GATE_AND_UP = ("mlp.gate_proj", "mlp.up_proj")

GROUP = FamilyGroup(
    families=(
        Family(
            model_type="phi3",
            known_as="Phi-3, Phi-3.5, Phi-4-mini",
            checkpoint=CheckpointForm(
                fused={"self_attn.qkv_proj": QKV, "mlp.gate_up_proj": GATE_AND_UP}
            ),
            gguf=GgufForm(
                architecture="phi3",
                # GGUF keeps the name of the half that comes second.
                fused={"attn_qkv": QKV, "ffn_up": GATE_AND_UP},
                has_factor_tensors=True,
                words=windows_everywhere,
            ),
        ),
    ),
    calls=(JSON_AFTER_TOKEN,),
    thoughts=(THINK_TAGS,),
)
