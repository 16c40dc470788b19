"""The methods and attributes that chat templates can use, and what the methods cost."""

from collections.abc import Callable
from typing import Any

from py_runtime.chat.bounds import (
    ITEM,
    OBJECT,
    POINTER,
    RenderingMeter,
    character_bytes,
    items_bytes,
    listed,
    weigh,
)
from py_runtime.chat.costs import (
    check_brace_format,
    check_key,
    check_membership,
    check_search,
    check_text,
)

Check = Callable[..., None]  # with the meter, the owner of the method and its arguments
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
CASE_WORK = 20  # units of work for a character that is looked up in the tables of Unicode
CASE_GROWTH = 3  # characters that one may become in another case


def check_nothing(meter: RenderingMeter, owner: Any, *args: Any) -> None:
    """Charge nothing: the method takes the same time whatever its owner is."""


def check_each_character(meter: RenderingMeter, text: str) -> None:
    """Charge for looking at each character."""
    meter.work(CASE_WORK * len(text))


def check_case(meter: RenderingMeter, text: str) -> None:
    """Charge for a copy in another case."""
    meter.work(CASE_WORK * len(text))
    check_text(meter, CASE_GROWTH * len(text), text)


def check_strip(meter: RenderingMeter, text: str, characters: str | None = None) -> None:
    """Charge for looking up each character in those that are to go."""
    meter.work(len(text) * (len(characters or "") + 1))
    check_text(meter, len(text), text)


def check_affix(meter: RenderingMeter, text: str, affix: Any, *places: Any) -> None:
    """Charge for comparing a text's beginning or end with one text or several."""
    affixes = affix if isinstance(affix, tuple) else (affix,)
    meter.work(ITEM * len(affixes))
    meter.work(sum(min(len(one), len(text)) for one in affixes if isinstance(one, str)))


def check_removed_affix(meter: RenderingMeter, text: str, affix: Any) -> None:
    """Charge for a copy without a beginning or an end."""
    check_affix(meter, text, affix)
    check_text(meter, len(text), text)


def check_find(meter: RenderingMeter, text: str, part: Any, *places: Any) -> None:
    """Charge for a search from the beginning."""
    if isinstance(part, str):
        check_search(meter, text, part)


def check_find_backwards(meter: RenderingMeter, text: str, part: Any, *places: Any) -> None:
    """Charge for a search from the end."""
    if isinstance(part, str):
        check_search(meter, text, part, backwards=True)


def check_partition(meter: RenderingMeter, text: str, part: Any) -> None:
    """Charge for the two sides of what is found."""
    check_find(meter, text, part)
    check_text(meter, len(text), text)


def check_partition_backwards(meter: RenderingMeter, text: str, part: Any) -> None:
    """Charge for the two sides of what is found from the end."""
    check_find_backwards(meter, text, part)
    check_text(meter, len(text), text)


def check_split(
    meter: RenderingMeter, text: str, sep: str | None = None, maxsplit: int = -1
) -> None:
    """Charge for the pieces of a text."""
    if isinstance(sep, str) and sep:
        check_search(meter, text, sep)
        pieces = text.count(sep) + 1
    else:
        pieces = len(text) // 2 + 1
    if isinstance(maxsplit, int) and maxsplit >= 0:
        pieces = min(pieces, maxsplit + 1)
    _charge_pieces(meter, text, pieces)


def check_split_backwards(
    meter: RenderingMeter, text: str, sep: str | None = None, maxsplit: int = -1
) -> None:
    """Charge for the pieces of a text that is split from the end."""
    if isinstance(sep, str):
        check_search(meter, text, sep, backwards=True)
    check_split(meter, text, sep, maxsplit)


def check_lines(meter: RenderingMeter, text: str, keepends: bool = False) -> None:
    """Charge for the lines of a text."""
    _charge_pieces(meter, text, count_lines(meter, text))


def count_lines(meter: RenderingMeter, text: str) -> int:
    """Return the most lines that splitlines() finds."""
    meter.work(len(LINE_ENDS) * len(text))
    return 1 + sum(map(text.count, LINE_ENDS))


def _charge_pieces(meter: RenderingMeter, text: str, pieces: int) -> None:
    meter.work(ITEM * pieces + len(text))
    meter.make((OBJECT + 16) * pieces + len(text) * character_bytes(text))


def check_replace(
    meter: RenderingMeter, text: str, old: Any, new: Any, count: int | None = -1
) -> None:
    """Charge for a copy in which each place that has the old text has the new one."""
    if not (isinstance(old, str) and isinstance(new, str)):
        return  # Python refuses it
    check_search(meter, text, old)
    places = text.count(old)
    if isinstance(count, int) and count >= 0:
        places = min(places, count)
    check_text(meter, len(text) + places * len(new), text, new)


def check_join(meter: RenderingMeter, between: str, items: Any) -> None:
    """Charge for the items, which are texts, and for what is put between them."""
    weight = weigh(meter, items)
    each = len(between) * character_bytes(between)
    count = len(items) if isinstance(items, str) else weight.items
    meter.work(count * (ITEM + each))
    meter.expect(4 * (weight.characters + count * each))
    meter.expect(items_bytes(items) if isinstance(items, str) else count * POINTER)


def check_padding(meter: RenderingMeter, text: str, width: int, fill: str = " ") -> None:
    """Charge for a text that is made as wide as that."""
    check_text(meter, max(len(text), width), text, fill)


def check_format(meter: RenderingMeter, layout: str, /, *args: Any, **named: Any) -> None:
    """Charge for a format in braces."""
    check_brace_format(meter, layout, [*args, *named.values()])


def check_lookup(meter: RenderingMeter, owner: Any, key: Any, default: Any = None) -> None:
    """Charge for get() of an object."""
    check_key(meter, key)


def check_item(meter: RenderingMeter, items: Any, item: Any, *places: Any) -> None:
    """Charge for comparing an item with all of them."""
    check_membership(meter, item, items)


def check_copy(meter: RenderingMeter, items: Any) -> None:
    """Charge for a list or an object with the same items."""
    meter.work(len(items) * ITEM)
    meter.expect(len(items) * (POINTER + OBJECT))


# encode, translate, maketrans, expandtabs and format_map are missing: no template needs them.
TEXT_METHODS: dict[str, Check] = {
    **dict.fromkeys(("capitalize", "casefold", "lower", "swapcase", "title", "upper"), check_case),
    **dict.fromkeys(("isalnum", "isalpha", "isdecimal", "isdigit"), check_each_character),
    **dict.fromkeys(("isidentifier", "islower", "isnumeric", "isprintable"), check_each_character),
    **dict.fromkeys(("isascii", "isspace", "istitle", "isupper"), check_each_character),
    **dict.fromkeys(("lstrip", "rstrip", "strip"), check_strip),
    **dict.fromkeys(("endswith", "startswith"), check_affix),
    **dict.fromkeys(("removeprefix", "removesuffix"), check_removed_affix),
    **dict.fromkeys(("count", "find", "index"), check_find),
    **dict.fromkeys(("rfind", "rindex"), check_find_backwards),
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), check_padding),
    "format": check_format,
    "join": check_join,
    "partition": check_partition,
    "replace": check_replace,
    "rpartition": check_partition_backwards,
    "rsplit": check_split_backwards,
    "split": check_split,
    "splitlines": check_lines,
}
METHODS: dict[type, dict[str, Check]] = {
    str: TEXT_METHODS,
    list: {"copy": check_copy, "count": check_item, "index": check_item},
    tuple: {"count": check_item, "index": check_item},
    range: {"count": check_item, "index": check_item},
    dict: {
        "copy": check_copy,
        "get": check_lookup,
        **dict.fromkeys(("items", "keys", "values"), check_nothing),
    },
    float: {"is_integer": check_nothing},
}


def checked_arguments(
    meter: RenderingMeter, method: Any, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """Charge for a call of one of these methods; return the arguments that it is to be given."""
    given = tuple(listed(meter, value) for value in args)
    METHODS[type(method.__self__)][method.__name__](meter, method.__self__, *given, **named)
    return given
