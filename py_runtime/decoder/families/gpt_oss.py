"""The gpt-oss models: experts with biases and a clamped gate, attention sinks, sliding windows.

Every other layer slides, beginning with the first.
"""

from py_runtime.decoder.config import CLAMPED
from py_runtime.decoder.conventions import HARMONY, Convention, Markers, Thoughts
from py_runtime.decoder.family import CheckpointForm, Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys, experts, layer_types, window
from py_runtime.decoder.mixtures import Mixture
from py_runtime.decoder.words import Words

CALLS = Convention(
    rank=5,
    known_by=("to=functions.",),
    calls=(Markers("<|channel|>commentary to=functions.", "<|call|>", HARMONY),),
    forced="<|channel|>commentary <|constrain|>json<|message|>",
    inner=("<|constrain|>", "<|message|>"),
)
THOUGHTS = Thoughts(
    rank=3,
    opener="<|channel|>analysis<|message|>",
    closer="<|end|>",
    known_by="<|channel|>",
    silent=(
        "<|start|>assistant",
        "<|channel|>final<|message|>",
        "<|channel|>commentary<|message|>",
        "<|end|>",
    ),
)


def gguf_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Return the experts and the windows, and keep yarn's bounds from being rounded.

    Where the file does not say which layers slide, the first one does, and every other after it.
    """
    rope["truncate"] = False
    return {
        **experts(keys, values, rope),
        "sliding_window": window(keys, 128),
        "layer_types": layer_types(keys, values, 2),
    }


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="gpt_oss",
            known_as="gpt-oss",
            checkpoint=CheckpointForm(tensors={"mlp.gate": "mlp.router"}),
            gguf=GgufForm(
                architecture="gpt-oss",
                tensors={"post_attention_layernorm": "post_attention_norm"},
                computed=("expert_count",),
                words=gguf_words,
            ),
            sinks=True,
            mixture=Mixture(activation=CLAMPED, has_bias=True, interleaved=True),
        ),
    ),
    calls=(CALLS,),
    thoughts=(THOUGHTS,),
)
