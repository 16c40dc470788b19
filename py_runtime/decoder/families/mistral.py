"""Mistral, whose GGUF files say that they are Llama's, and Ministral 3.

Ministral 3 scales queries by their positions beyond the original context.
"""

from py_runtime.decoder.conventions import MISTRAL, Convention, Markers, Thoughts
from py_runtime.decoder.family import Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys, windows_everywhere
from py_runtime.decoder.words import Words

TEMPERATURE = "attention.temperature_scale"

CALLS = Convention(
    rank=3,
    known_by=("[TOOL_CALLS]",),
    calls=(Markers("[TOOL_CALLS]", "[TOOL_CALLS]", MISTRAL),),
    forced="[TOOL_CALLS]",
    inner=("[ARGS]", "[CALL_ID]"),
)
THOUGHTS = Thoughts(rank=1, opener="[THINK]", closer="[/THINK]", known_by="[/THINK]")


def ministral3_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Add how fast queries grow to the rotary parameters."""
    if TEMPERATURE in keys and rope["rope_type"] == "yarn":
        rope["llama_4_scaling_beta"] = keys.number(TEMPERATURE, 0.0, 1.0)
    return windows_everywhere(keys, values, rope)


GROUP = FamilyGroup(
    families=(
        Family(model_type="mistral", known_as="Mistral"),
        Family(
            model_type="ministral3",
            known_as="Ministral 3",
            gguf=GgufForm(architecture="mistral3", pairs_side_by_side=True, words=ministral3_words),
            scales_queries=True,
        ),
    ),
    calls=(CALLS,),
    thoughts=(THOUGHTS,),
)
