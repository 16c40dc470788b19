"""The texts of a request, wherever they stand in it."""

from collections.abc import Iterator, Mapping
from typing import Any

from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short

LONG_REQUEST = 50_000  # characters: what is made of more takes a while


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text in a value of JSON's, the names of properties included."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending += item.keys()
            pending += item.values()
        elif isinstance(item, list | tuple):
            pending += item


def is_long(value: Any) -> bool:
    """Return whether a value has so much text, or so many items, that work on it takes a while."""
    total = len(value) if isinstance(value, list | tuple) else 0
    for text in texts_of(value):
        total += 1 + len(text)
        if total > LONG_REQUEST:
            return True
    return total > LONG_REQUEST


def refuse_half_pairs(fields: Mapping[str, Any]) -> None:
    r"""Check that all texts are Unicode's; RequestError names the field that has half a pair.

    JSON can spell one half of a surrogate pair (`"\ud800"`), and JavaScript's texts may hold one,
    but no token, no UTF-8 and hence no answer can.
    """
    for name, value in fields.items():
        for text in texts_of([name, value]):
            if text.isascii():
                continue
            try:
                text.encode()
            except UnicodeEncodeError as error:
                half = f"U+{ord(text[error.start]):04X} at character {error.start}"
                raise RequestError(
                    f"{short(name)} has a text with half of a surrogate pair, {half}: send the "
                    "whole pair, or none of it"
                ) from None
