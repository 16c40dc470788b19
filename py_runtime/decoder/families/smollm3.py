"""SmolLM3: heads of each fourth layer do not turn."""

from py_runtime.decoder.conventions import JSON_IN_TAGS, THINK_TAGS
from py_runtime.decoder.family import Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import GgufKeys
from py_runtime.decoder.words import Words


def gguf_words(keys: GgufKeys, values: Words, rope: Words) -> Words:
    """Tell which layers turn, which files leave out."""
    layers = values["num_hidden_layers"]
    return {"no_rope_layers": [int((number + 1) % 4 != 0) for number in range(layers)]}


GROUP = FamilyGroup(
    families=(
        Family(
            model_type="smollm3",
            known_as="SmolLM3",
            gguf=GgufForm(architecture="smollm3", pairs_side_by_side=True, words=gguf_words),
        ),
    ),
    calls=(JSON_IN_TAGS,),
    thoughts=(THINK_TAGS,),
)
