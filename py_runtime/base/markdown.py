"""Strangers' texts as Markdown in which nothing acts but what we wrote."""

from collections.abc import Iterable, Sequence

from py_runtime.base.errors import InpageError

MAX_ROWS = 300  # of a table: a file may claim anything
MAX_CHARACTERS = 80  # of a name


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table; a heading that ends in a colon marks a column of numbers."""
    if not rows:
        return ""
    rules = ["--:" if name.endswith(":") else "---" for name in head]
    lines = [[name.removesuffix(":") for name in head], rules, *rows[:MAX_ROWS]]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    left_out = len(rows) - MAX_ROWS
    return f"{text}\n\nand {left_out} more." if left_out > 0 else text


def code(value: object) -> str:
    """Render a code span; what would end the span or a table cell is replaced."""
    return f"`{_printable(str(value), MAX_CHARACTERS, '`|')}`"


def plain(text: str, max_characters: int = MAX_CHARACTERS) -> str:
    """Escape a stranger's text so that nothing in it acts as Markdown."""
    return "".join(
        f"\\{character}" if character in "\\`*_[]<>#|~!" else character
        for character in _printable(text, max_characters, "")
    )


def cannot_be_loaded(error: InpageError) -> str:
    """Render why a stranger's file cannot be loaded."""
    return f"**It cannot be loaded**: {plain(str(error), max_characters=2000)}."


def _printable(text: str, max_characters: int, forbidden: Iterable[str]) -> str:
    shown = "".join(
        character if character.isprintable() and character not in forbidden else "·"
        for character in text[:max_characters]
    )
    return f"{shown}…" if len(text) > max_characters else shown or "·"
