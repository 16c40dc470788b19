"""Costs of operators, comparisons and formats in a chat template, charged before they run."""

import re
from collections.abc import Sequence
from string import Formatter
from types import NoneType
from typing import Any

from py_runtime.chat.bounds import (
    ITEM,
    MAX_BITS,
    MAX_DIGITS,
    OBJECT,
    POINTER,
    VIEWS,
    RenderingMeter,
    character_bytes,
    is_container,
    too_much,
    unsupported,
    weigh,
)

KEYS: type = type({}.keys())
LARGEST_KEY = 1 << 30  # beyond it, integers that share a hash are easily found
NAIVE_SEARCH = 30_000  # characters: Python searches longer texts in linear time
FIELD = 500  # units of work for a field of a format

_DIGITS = re.compile(r"[0-9]+")
_CONVERSION = re.compile(r"%[#0 +-]*(\*|[0-9]*)(?:\.(\*|[0-9]*))?")


# Operators ----------------------------------------------------------------------------------------


def check_operator(meter: RenderingMeter, operator: str, left: Any, right: Any) -> None:
    """Charge for an arithmetic operator."""
    for operand in (left, right):
        if isinstance(operand, VIEWS):
            raise unsupported(f"{operator} with the {type(operand).__name__} of an object")
    if isinstance(left, int) and isinstance(right, int):
        _check_integers(operator, left, right)
    elif operator == "%" and isinstance(left, str):
        check_percent_format(meter, left, right)
    elif operator == "+" and isinstance(left, str) and isinstance(right, str):
        check_text(meter, len(left) + len(right), left, right)
    elif operator == "+" and isinstance(left, list | tuple) and isinstance(right, list | tuple):
        meter.expect(POINTER * (len(left) + len(right)))
    elif operator == "*":
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, str) and isinstance(times, int):
                check_text(meter, len(sequence) * max(times, 0), sequence)
            elif isinstance(sequence, list | tuple) and isinstance(times, int):
                meter.expect(POINTER * len(sequence) * max(times, 0))


def _check_integers(operator: str, left: int, right: int) -> None:
    if operator == "*":
        bits = left.bit_length() + right.bit_length() - 1
    elif operator == "**" and right > 0:
        bits = max(left.bit_length() - 1, 0) * right
    else:
        return
    if bits > MAX_BITS:
        raise integer_too_large()


def check_integer(value: int) -> None:
    """Check that an integer is not too large to compute with."""
    if value.bit_length() > MAX_BITS:
        raise integer_too_large()


def integer_too_large() -> Exception:
    """Return the error for an integer with too many bits."""
    return too_much(f"computes an integer of more than {MAX_BITS:,} bits")


def check_digits(number: Any) -> None:
    """Check the width or the precision of a number, or the length of its text."""
    if isinstance(number, int) and abs(number) > MAX_DIGITS:
        raise too_much(f"asks for more than {MAX_DIGITS:,} digits or characters of a number")


def check_text(meter: RenderingMeter, length: int, *sources: str) -> None:
    """Charge for a text of so many characters that is put together from these."""
    meter.work(length)
    meter.expect(length * character_bytes(*sources))


# Comparisons --------------------------------------------------------------------------------------


def check_comparison(meter: RenderingMeter, operator: str, left: Any, right: Any) -> None:
    """Charge for a comparison, under the names that jinja2 gives them."""
    if operator in ("in", "notin"):
        check_membership(meter, left, right)
    elif operator in ("eq", "ne"):
        check_equality(meter, left, right)
    else:
        meter.work(ordering_work(meter, left) + ordering_work(meter, right))


def check_equality(meter: RenderingMeter, left: Any, right: Any) -> None:
    """Charge for == of two values."""
    if isinstance(left, str) and isinstance(right, str):
        meter.work(min(len(left), len(right)))
    elif is_container(left) and is_container(right) and len(left) == len(right):
        weigh(meter, left)
        weigh(meter, right)


def ordering_work(meter: RenderingMeter, value: Any) -> int:
    """Return the units of work that one comparison by size takes for its part in it.

    Each list that two values differ in is compared twice, so lists in lists take more than once.
    """
    if isinstance(value, str):
        return len(value)
    if not is_container(value):
        return ITEM
    weight = weigh(meter, value)
    is_nested = any(map(is_container, value))
    return (weight.items * ITEM + weight.characters) * (weight.items if is_nested else 1)


def check_membership(meter: RenderingMeter, item: Any, container: Any) -> None:
    """Charge for looking for an item in a container."""
    if isinstance(container, str):
        if isinstance(item, str):
            check_search(meter, container, item)
    elif isinstance(container, (dict, KEYS)):
        check_key(meter, item)
    elif isinstance(container, range):
        meter.work(1 if isinstance(item, int) else ITEM * len(container))
    elif is_container(container):
        meter.work(ITEM * len(container))
        if isinstance(item, str):
            meter.work(len(item) * len(container))
        elif is_container(item):
            weigh(meter, item)
            weigh(meter, container)


def check_search(meter: RenderingMeter, text: str, part: str, backwards: bool = False) -> None:
    """Charge for looking for one text in another.

    Python looks for long texts in linear time, but not for short ones, nor from the end.
    """
    if backwards or len(text) < NAIVE_SEARCH:
        meter.work(len(text) * (min(len(part), len(text)) + 1))
    else:
        meter.work(8 * len(text) + len(part))


# Keys ---------------------------------------------------------------------------------------------


def check_key(meter: RenderingMeter, key: Any) -> None:
    """Charge for looking up a key."""
    if isinstance(key, tuple):  # the hash of a tuple is computed anew each time
        weigh(meter, key)
    elif isinstance(key, str):
        meter.work(len(key))


def is_plain_key(key: Any) -> bool:
    """Tell whether a table with such keys cannot be slowed down by choosing them."""
    return isinstance(key, str | NoneType) or (
        isinstance(key, int) and -LARGEST_KEY < key < LARGEST_KEY
    )


def check_new_keys(meter: RenderingMeter, keys: Sequence[Any]) -> None:
    """Charge for an object with these keys."""
    meter.expect(len(keys) * (OBJECT + 5 * POINTER))
    meter.work(len(keys) * ITEM)
    for key in keys:
        check_key(meter, key)
        if not is_plain_key(key):
            raise unsupported(f"a key of the type {type(key).__name__}")


# Formats ------------------------------------------------------------------------------------------


def check_percent_format(meter: RenderingMeter, layout: str, given: Any) -> None:
    """Charge for layout % given."""
    meter.work(FIELD * layout.count("%") + len(layout))
    # Keys in brackets may hide what follows them: then any number could be a width.
    is_named = "%(" in layout
    found = _CONVERSION.findall(layout)
    widths = _DIGITS.findall(layout) if is_named else [width for pair in found for width in pair]
    if any("*" in pair for pair in found) or (is_named and "*" in layout):
        raise unsupported("a format with a width of *")
    _check_fields(meter, layout, [given], widths, layout.count("%"))


def check_brace_format(meter: RenderingMeter, layout: str, given: Sequence[Any]) -> None:
    """Charge for layout.format(...) with these values."""
    meter.work(FIELD * layout.count("{") + len(layout))
    widths: list[str] = []
    fields = 0
    for _, name, spec, _ in Formatter().parse(layout):
        if spec and "{" in spec:
            raise unsupported("a format with a field in another one")
        fields += name is not None
        widths += _DIGITS.findall(spec or "")
    _check_fields(meter, layout, given, widths, fields)


def _check_fields(
    meter: RenderingMeter, layout: str, given: Sequence[Any], widths: list[str], fields: int
) -> None:
    """Check that there is room even if each field shows all of the values, escaped."""
    total = 0
    for width in widths:
        number = int(width[:9] or 0)
        check_digits(number)
        total += number
    shown = sum(weigh(meter, value).spelled for value in given)
    meter.expect(4 * len(layout) + 4 * total + fields * (shown + OBJECT))
    meter.work(len(layout) + total + fields * shown)
