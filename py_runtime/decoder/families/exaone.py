"""EXAONE 3.5, a Llama with names of its own code, and EXAONE 4, whose norms come after.

Where some layers of EXAONE 4 slide, the others have no rotary positions.
"""

from py_runtime.decoder.config import AFTER, HEADS
from py_runtime.decoder.conventions import THINK_TAGS
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys, layer_types, window
from py_runtime.decoder.words import FULL, Words

TENSORS = {
    "embed_tokens": "wte",
    "norm": "ln_f",
    "input_layernorm": "ln_1",
    "post_attention_layernorm": "ln_2",
    "self_attn.q_proj": "attn.attention.q_proj",
    "self_attn.k_proj": "attn.attention.k_proj",
    "self_attn.v_proj": "attn.attention.v_proj",
    "self_attn.o_proj": "attn.attention.out_proj",
    "mlp.gate_proj": "mlp.c_fc_0",
    "mlp.up_proj": "mlp.c_fc_1",
    "mlp.down_proj": "mlp.c_proj",
}
KEYS = {
    "num_layers": "num_hidden_layers",
    "layer_norm_epsilon": "rms_norm_eps",
    "activation_function": "hidden_act",
}


def exaone4_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Tell which layers slide: none without a window."""
    found = window(keys, 0)
    if not found:
        return {"sliding_window": None, "layer_types": [FULL] * values["num_hidden_layers"]}
    return {"sliding_window": found, "layer_types": layer_types(keys, values, 4)}


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="exaone",
            known_as="EXAONE 3.5",
            checkpoint=CheckpointForm(tensors=TENSORS, layers="h", read_as="llama", keys=KEYS),
            gguf=GgufForm(architecture="exaone"),
        ),
        Family(
            model_type="exaone4",
            known_as="EXAONE 4",
            gguf=GgufForm(architecture="exaone4", words=exaone4_words),
            qk_norm=HEADS,
            turns_only_sliding=True,
            norms=AFTER,
        ),
    ),
    thoughts=(THINK_TAGS,),
)
