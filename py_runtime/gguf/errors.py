"""Errors of a GGUF file."""

from collections.abc import Iterable

from py_runtime.base.model_errors import ModelError
from py_runtime.base.short_texts import first_of

DAMAGED = "copy or download the file again"
MAX_SHOWN = 80  # characters of a name that a file gave
MAX_NAMES = 8  # that are listed


class GgufError(ModelError):
    """An error of a damaged or contradictory file; the text names the file and the place."""

    code = "model_gguf"

    def __init__(self, fault: str, advice: str = DAMAGED) -> None:
        super().__init__(fault, advice)


class UnsupportedGgufError(GgufError):
    """An error of a sound file that needs what this engine does not have."""

    code = "model_gguf_unsupported"


def shown(name: str) -> str:
    """Quote a file's name for something in a message: on one line, and of limited length."""
    short = name if len(name) <= MAX_SHOWN else name[:MAX_SHOWN] + "…"
    return ascii(short) if any(not c.isprintable() for c in short) else f"'{short}'"


def listed(names: Iterable[str]) -> str:
    """List as many names as a person reads, and how many more there are."""
    return ", ".join(first_of(list(names), MAX_NAMES))
