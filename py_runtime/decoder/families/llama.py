"""Llama, and all that come as Llama: SmolLM2, TinyLlama, Falcon3."""

from py_runtime.decoder.conventions import KNOWN_JSON, Convention, Markers
from py_runtime.decoder.family import Family, FamilyGroup, GgufForm
from py_runtime.decoder.gguf_words import windows_everywhere

# Llama 3.1 to 3.3. Their marks stand in templates of others, too.
CALLS = Convention(
    rank=9,
    known_by=('"parameters"', "<|python_tag|>"),
    calls=(
        Markers("<|python_tag|>", "", KNOWN_JSON),
        Markers("{", "", KNOWN_JSON, is_first=True, kept=1),
    ),
    forced="",
    arguments="parameters",
)

GROUP = FamilyGroup(
    families=(
        Family(
            model_type="llama",
            known_as="Llama, SmolLM2, TinyLlama, Falcon3",
            gguf=GgufForm(architecture="llama", pairs_side_by_side=True, words=windows_everywhere),
        ),
    ),
    calls=(CALLS,),
)
