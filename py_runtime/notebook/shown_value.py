"""The text that the Python box shows of a value: all of a short one, a long one cut."""

from itertools import islice
from pprint import pformat
from typing import Any

import numpy as np

MAX_ITEMS = 60  # of a list, a dict, an array
MAX_CHARACTERS = 10_000
WIDTH = 88
DEEPEST = 8  # a list may be in itself


class Left:
    """A placeholder for the items that are left out."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __repr__(self) -> str:
        return f"… {self._count:,} more"


def shown_value(value: Any) -> str:
    """Return a value as text; None gives no text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return cut(value)
    with np.printoptions(threshold=MAX_ITEMS, edgeitems=3, linewidth=WIDTH):
        if isinstance(value, np.ndarray):
            shape = " × ".join(map(str, value.shape)) or "one number"
            return cut(f"array of {value.dtype}, {shape}\n{value}")
        return cut(pformat(_shortened(value, DEEPEST), width=WIDTH, sort_dicts=False))


def cut(text: str) -> str:
    """Return a long text's beginning and its length."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}… ({len(text):,} characters in all)"


def _shortened(value: Any, depth: int) -> Any:
    """Shorten Python's own containers, so that the text of a long one is never built whole."""
    if depth == 0 or type(value) not in (list, tuple, set, frozenset, dict):
        return value
    left = len(value) - MAX_ITEMS
    if isinstance(value, dict):
        kept = islice(value.items(), MAX_ITEMS)
        items = {key: _shortened(item, depth - 1) for key, item in kept}
        return items | {Left(left): ...} if left > 0 else items
    shortened = [_shortened(item, depth - 1) for item in islice(value, MAX_ITEMS)]
    if isinstance(value, set | frozenset):
        shortened = list(islice(value, MAX_ITEMS))  # what a set holds stays hashable
    return type(value)([*shortened, Left(left)] if left > 0 else shortened)
