"""Strangers' texts in our messages, shortened to what a message has room for."""

from collections.abc import Sequence


def short(data: object, max_characters: int = 80) -> str:
    """Return untrusted data, escaped and shortened."""
    text = repr(data)
    return text if len(text) <= max_characters else f"{text[: max_characters - 3]}..."


def first_of(names: Sequence[str], max_names: int) -> list[str]:
    """Return as many names as a person reads, and how many more there are."""
    more = len(names) - max_names
    return [*names[:max_names], *([f"and {more} more"] if more > 0 else [])]
