"""A parser for JSON from strangers: UTF-8 only, no key twice, no numbers that JSON lacks."""

import json
from typing import Any, TypeGuard

from py_runtime.base.short_texts import short

MAX_SAFE_INTEGER = 2**53 - 1
MAX_DIGITS = 1000  # of an integer; the largest double has 309


def parse_strict_json(data: bytes) -> Any:
    """Parse JSON; raise ValueError with one line that says what is wrong."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    try:
        return json.loads(
            text,
            object_pairs_hook=_refuse_doubles,
            parse_constant=_refuse_constant,
            parse_int=_parse_integer,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse equal keys: Python would keep the last of them, other parsers the first."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {short(key)} appears twice in one object")
        members[key] = value
    return members


def _parse_integer(digits: str) -> int | float:
    """Parse an integer; -0 becomes a float, as in other parsers, and so no count."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is too long")
    return -0.0 if digits == "-0" else int(digits)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def is_count(data: object) -> TypeGuard[int]:
    """Return whether this is an integer from 0 up that JavaScript, too, reads exactly."""
    return type(data) is int and 0 <= data <= MAX_SAFE_INTEGER
