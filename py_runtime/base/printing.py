"""Printing text of strangers to a terminal, which would obey the control characters in it."""

import sys
import unicodedata
from typing import TextIO

# Python calls these unprintable, but people write them: joiners of emoji, Persian and Hindi, and
# marks of the direction of a single word.
KEPT = frozenset("\n\t\u200c\u200d\u200e\u200f")
REPLACEMENT = "·"  # as in what `inspect` prints


def printable(text: str) -> str:
    """Return a text that a terminal can only show; each character is judged by itself."""
    if text.isprintable():
        return text
    return "".join(map(_printable_character, text))


def _printable_character(character: str) -> str:
    if character == "\r":
        return ""  # half of the end of a line, or a way to write over one
    is_kept = character.isprintable() or character in KEPT
    return character if is_kept or unicodedata.category(character) == "Zs" else REPLACEMENT


def print_plainly(text: str, end: str = "\n", file: TextIO | None = None) -> None:
    """Print a text at once, with nothing in it that acts."""
    print(printable(text), end=end, file=file or sys.stdout, flush=True)
