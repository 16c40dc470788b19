"""A model in plain words, for people who never heard of parameters, and whether it fits here."""

from collections.abc import Mapping
from typing import Any

from py_runtime.base.sizes import in_words
from py_runtime.folder.manifest import NEEDED_LIMITS

WORDS_PER_TOKEN = 0.75
SMALL, MIDDLING = 300e6, 1.5e9  # bytes


def plain_words(model: Mapping[str, Any]) -> str:
    """ "small and fast · 101 MB · remembers about 1,500 words"; what is not known is left out."""
    parts: list[str] = []
    if size := model.get("size"):
        parts += [_kind(size), in_words(size)]
    if context := model.get("context"):
        parts.append(f"remembers about {rounded(context * WORDS_PER_TOKEN):,} words")
    return " · ".join(parts)


def _kind(size: int) -> str:
    if size < SMALL:
        return "small and fast"
    return "medium-sized" if size < MIDDLING else "large and slower"


def rounded(count: float) -> int:
    """To two digits: nobody remembers 1,536 words."""
    return int(float(f"{count:.2g}"))


def fit(model: Mapping[str, Any], limits: Mapping[str, int]) -> dict[str, Any]:
    """Whether this GPU takes it, and in words why not; nothing of what is not known."""
    needed = model.get("largest_buffer")
    if needed is None:
        return {}
    limit = min(limits[name] for name in NEEDED_LIMITS)
    if needed <= limit:
        return {"fits_gpu": True}
    words = f"{in_words(needed)} in one piece, and this GPU takes {in_words(limit)} at most."
    return {"fits_gpu": False, "fit": f"Does not fit: it needs {words}"}
