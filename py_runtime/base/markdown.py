"""What files of strangers say, as Markdown in which nothing acts but what we wrote."""

from collections.abc import Iterable, Sequence

from py_runtime.base.errors import InpageError

MAX_ROWS = 300  # of a table: a file may claim anything
MAX_CHARACTERS = 80  # of a name


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A heading that ends in a colon is of a column of numbers."""
    if not rows:
        return ""
    rules = ["--:" if name.endswith(":") else "---" for name in head]
    lines = [[name.removesuffix(":") for name in head], rules, *rows[:MAX_ROWS]]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    left_out = len(rows) - MAX_ROWS
    return f"{text}\n\nand {left_out} more." if left_out > 0 else text


def code(value: object) -> str:
    """In a table too: what would end a span or a cell is replaced."""
    return f"`{_printable(str(value), MAX_CHARACTERS, '`|')}`"


def plain(text: str, max_characters: int = MAX_CHARACTERS) -> str:
    """A stranger's text with nothing in it that acts as Markdown."""
    return "".join(
        f"\\{character}" if character in "\\`*_[]<>#|~!" else character
        for character in _printable(text, max_characters, "")
    )


def cannot_be_loaded(error: InpageError) -> str:
    """A file of a stranger's, for this reason."""
    return f"**It cannot be loaded**: {plain(str(error), max_characters=2000)}."


def _printable(text: str, max_characters: int, forbidden: Iterable[str]) -> str:
    shown = "".join(
        character if character.isprintable() and character not in forbidden else "·"
        for character in text[:max_characters]
    )
    return f"{shown}…" if len(text) > max_characters else shown or "·"
