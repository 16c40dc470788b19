"""OLMo 2 and 3: norms come after, and those of q and k go over all heads of a token together."""

from py_runtime.decoder.config import AFTER, ROWS
from py_runtime.decoder.conventions import THINK_TAGS
from py_runtime.decoder.family import Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys, layer_types, window
from py_runtime.decoder.words import FULL, SLIDING, Words


def gguf_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Take a file with a window for OLMo 3, whose positions are stretched in full layers alone."""
    found = window(keys, 0)
    if not found:
        return {}
    plain = {"rope_type": "default", "rope_theta": rope["rope_theta"]}
    return {
        "model_type": "olmo3",
        "sliding_window": found,
        "layer_types": layer_types(keys, values, 4),
        "rope_parameters": {FULL: rope, SLIDING: plain},
    }


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="olmo2",
            known_as="OLMo 2",
            gguf=GgufForm(architecture="olmo2", words=gguf_words),
            qk_norm=ROWS,
            norms=AFTER,
        ),
        Family(model_type="olmo3", known_as="OLMo 3", qk_norm=ROWS, norms=AFTER),
    ),
    thoughts=(THINK_TAGS,),
)
