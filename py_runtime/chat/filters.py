"""The filters and tests that chat templates can use, each charged before it runs.

What is missing here has no place in a chat template, or costs more than its arguments tell: HTML
(escape, urlize, xmlattr …), wordwrap, pprint, random, groupby, attr and the like. A template that
uses one of those is told that there is no filter of that name.
"""

import json
from collections.abc import Callable, Sized
from functools import wraps
from math import log2
from typing import Any

from jinja2 import pass_environment
from jinja2.filters import FILTERS, make_attrgetter, make_multi_attrgetter
from jinja2.tests import TESTS

from py_runtime.chat.bounds import (
    ACCESS,
    ITEM,
    MAX_DIGITS,
    OBJECT,
    POINTER,
    RenderingMeter,
    items_bytes,
    listed,
    spelled_bytes,
    too_much,
    weigh,
)
from py_runtime.chat.costs import (
    check_comparison,
    check_digits,
    check_operator,
    check_percent_format,
    check_text,
    is_plain_key,
    ordering_work,
)
from py_runtime.chat.metered import MeteredEnvironment
from py_runtime.chat.methods import (
    CASE_GROWTH,
    CASE_WORK,
    check_case,
    check_each_character,
    check_join,
    check_padding,
    check_replace,
    check_strip,
    count_lines,
)

# A check gets the environment, the filter's value and its arguments. It charges for the filter
# and returns what the filter is to be applied to: a list instead of an iterator, for example.
Check = Callable[..., Any]
SORT_LEVELS = 8  # comparisons of each item, besides the logarithm of their number
TITLE_PIECE = 3 * OBJECT  # bytes: jinja2 takes a text apart at every word


def as_text(meter: RenderingMeter, value: Any) -> str:
    """Return str(value), charged."""
    if isinstance(value, str):
        return value
    size = spelled_bytes(meter, value)
    meter.work(size)
    meter.expect(size)
    text = str(value)
    meter.make(len(text))
    return text


def _length_of(value: Any) -> int:
    """Return the number of items where that is known; iterators are charged for each one."""
    return len(value) if isinstance(value, Sized) else 0


# Filters ------------------------------------------------------------------------------------------


def check_nothing(environment: MeteredEnvironment, value: Any, *args: Any, **named: Any) -> Any:
    """Charge nothing: the filter takes the same time whatever its value is."""
    return value


def check_lazy(environment: MeteredEnvironment, value: Any, *args: Any, **named: Any) -> Any:
    """Charge for going through the items; what is done with each is charged when it is done."""
    environment.meter.work(ITEM * _length_of(value))
    return value


def _text_filter(check: Callable[..., None]) -> Check:
    """Return the check of a filter that does what a method of texts does."""

    def checked(environment: MeteredEnvironment, value: Any, *args: Any, **named: Any) -> Any:
        text = as_text(environment.meter, value)
        check(environment.meter, text, *args, **named)
        return text

    return checked


def check_shown(meter: RenderingMeter, text: str) -> None:
    """Charge nothing more for a value that has been made a text."""


def check_center(meter: RenderingMeter, text: str, width: int = 80) -> None:
    """Charge for a text that is made as wide as that."""
    check_padding(meter, text, width)


def check_title(meter: RenderingMeter, text: str) -> None:
    """Charge for a text that is taken apart at every word."""
    meter.work((CASE_WORK + ITEM) * len(text))
    meter.expect((CASE_GROWTH * 4 + TITLE_PIECE) * len(text))


def check_truncate(meter: RenderingMeter, text: str, *args: Any, **named: Any) -> None:
    """Charge for the beginning of a text, and for what follows it."""
    ends = [value for value in (*args, *named.values()) if isinstance(value, str)]
    check_text(meter, 2 * len(text) + sum(map(len, ends)), text, *ends)


def check_indent(
    meter: RenderingMeter, text: str, width: Any = 4, first: bool = False, blank: bool = False
) -> None:
    """Charge for each line, and for what is put before it."""
    lines = count_lines(meter, text) + 1
    indent = len(width) if isinstance(width, str) else max(width, 0)
    meter.work(ITEM * lines)
    meter.expect(lines * (OBJECT + POINTER))
    before = width if isinstance(width, str) else ""
    check_text(meter, 2 * len(text) + lines * (indent + 2), text, before)


def check_filter_replace(
    environment: MeteredEnvironment, value: Any, old: Any, new: Any, count: int | None = None
) -> Any:
    """Charge for a replacement, where all three may be something other than texts."""
    meter = environment.meter
    text = as_text(meter, value)
    check_replace(meter, text, as_text(meter, old), as_text(meter, new), count)
    return text


def check_filter_format(
    environment: MeteredEnvironment, value: Any, *args: Any, **named: Any
) -> Any:
    """Charge for a format with percent signs."""
    text = as_text(environment.meter, value)
    check_percent_format(environment.meter, text, named or args)
    return text


def check_number(environment: MeteredEnvironment, value: Any, *args: Any, **named: Any) -> Any:
    """Check that a text is short enough to be a number."""
    if isinstance(value, str) and len(value) > MAX_DIGITS:
        raise too_much(f"makes a number of a text of more than {MAX_DIGITS:,} characters")
    return value


def check_round(
    environment: MeteredEnvironment, value: Any, precision: Any = 0, method: str = "common"
) -> Any:
    """Check the precision of a number."""
    if isinstance(value, str | list | tuple):
        raise TypeError(f"round takes a number, not a {type(value).__name__}")
    check_digits(precision)
    return value


def check_list(environment: MeteredEnvironment, value: Any, *args: Any, **named: Any) -> Any:
    """Charge for a list of the items."""
    found = listed(environment.meter, value)
    environment.meter.work(ITEM * _length_of(found))
    if isinstance(found, Sized):
        environment.meter.expect(2 * items_bytes(found))
    return found


def check_batch(environment: MeteredEnvironment, value: Any, *args: Any, **named: Any) -> Any:
    """Charge for lists of so many items, or so many lists."""
    for count in (*args, *named.values()):
        if isinstance(count, int):
            environment.meter.expect(POINTER * abs(count))
    return check_list(environment, value)


def check_filter_join(
    environment: MeteredEnvironment, value: Any, d: Any = "", attribute: Any = None
) -> Any:
    """Charge for the items as texts, and for what is put between them."""
    meter = environment.meter
    items = check_list(environment, value)
    shown = list(map(make_attrgetter(environment, attribute), items))
    size = weigh(meter, shown).spelled
    meter.work(size)
    meter.expect(size)
    check_join(meter, as_text(meter, d), shown)
    return items


def check_sum(
    environment: MeteredEnvironment, value: Any, attribute: Any = None, start: Any = 0
) -> Any:
    """Check that what is added up is numbers: adding up lists takes quadratic time."""
    items = check_list(environment, value)
    for number in (start, *map(make_attrgetter(environment, attribute), items)):
        if not isinstance(number, int | float):
            raise TypeError(f"sum takes numbers, not a {type(number).__name__}")
    return items


def _charge_keys(meter: RenderingMeter, keys: list[Any], case_sensitive: bool) -> None:
    """Charge for the keys, which jinja2 makes lower-case unless case matters."""
    characters = weigh(meter, keys).characters
    if not case_sensitive:
        meter.work(CASE_WORK * characters)
        meter.make(CASE_GROWTH * characters)


def _charge_sort(meter: RenderingMeter, keys: list[Any], case_sensitive: bool) -> None:
    _charge_keys(meter, keys, case_sensitive)
    levels = int(log2(len(keys) + 1)) + SORT_LEVELS
    meter.expect(2 * POINTER * len(keys))
    meter.work(levels * sum(ITEM + ordering_work(meter, key) for key in keys))


def check_sort(
    environment: MeteredEnvironment,
    value: Any,
    reverse: bool = False,
    case_sensitive: bool = False,
    attribute: Any = None,
) -> Any:
    """Charge for comparing the items often enough to sort them."""
    items = check_list(environment, value)
    keys = list(map(make_multi_attrgetter(environment, attribute), items))
    environment.meter.make(sum(OBJECT + POINTER * len(key) for key in keys))
    _charge_sort(environment.meter, keys, case_sensitive)
    return items


def check_dictsort(
    environment: MeteredEnvironment,
    value: Any,
    case_sensitive: bool = False,
    by: str = "key",
    reverse: bool = False,
) -> Any:
    """Charge for sorting an object's items."""
    if isinstance(value, dict):
        environment.meter.expect(len(value) * (POINTER + OBJECT))
        keys = list(value.values() if by == "value" else value)
        _charge_sort(environment.meter, keys, case_sensitive)
    return value


def check_extreme(
    environment: MeteredEnvironment,
    value: Any,
    case_sensitive: bool = False,
    attribute: Any = None,
) -> Any:
    """Charge for comparing each item once."""
    items = check_list(environment, value)
    meter = environment.meter
    keys = list(map(make_attrgetter(environment, attribute), items))
    _charge_keys(meter, keys, case_sensitive)
    meter.work(2 * sum(ordering_work(meter, key) for key in keys))
    return items


def check_unique(
    environment: MeteredEnvironment,
    value: Any,
    case_sensitive: bool = False,
    attribute: Any = None,
) -> Any:
    """Charge for a set of the items; where those may share a hash, each is compared with all."""
    items = check_list(environment, value)
    meter = environment.meter
    keys = list(map(make_attrgetter(environment, attribute), items))
    _charge_keys(meter, keys, case_sensitive)
    meter.expect(2 * OBJECT * len(keys))
    if not all(map(is_plain_key, keys)):
        weight = weigh(meter, keys)
        meter.work(len(keys) * (weight.items + weight.characters))
    return items


def to_json(
    environment: MeteredEnvironment,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON as transformers writes it: jinja2's own escapes characters for HTML.

    It is made piece by piece, for indents and separators add up.
    """
    meter = environment.meter
    weight = weigh(meter, value)
    meter.work(weight.spelled)
    meter.expect(weight.spelled)
    check_digits(len(indent) if isinstance(indent, str) else indent)
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    pieces: list[str] = []
    for piece in encoder.iterencode(value):
        meter.make(len(piece) + POINTER)
        pieces.append(piece)
    return "".join(pieces)


FILTER_CHECKS: dict[str, Check] = {
    **dict.fromkeys(("abs", "count", "d", "default", "first", "last", "length"), check_nothing),
    **dict.fromkeys(("items", "map", "reject", "rejectattr", "select", "selectattr"), check_lazy),
    **dict.fromkeys(("capitalize", "lower", "upper"), _text_filter(check_case)),
    **dict.fromkeys(("float", "int"), check_number),
    **dict.fromkeys(("list", "reverse"), check_list),
    **dict.fromkeys(("batch", "slice"), check_batch),
    **dict.fromkeys(("max", "min"), check_extreme),
    "center": _text_filter(check_center),
    "dictsort": check_dictsort,
    "format": check_filter_format,
    "indent": _text_filter(check_indent),
    "join": check_filter_join,
    "replace": check_filter_replace,
    "round": check_round,
    "sort": check_sort,
    "string": _text_filter(check_shown),
    "sum": check_sum,
    "title": _text_filter(check_title),
    "trim": _text_filter(check_strip),
    "truncate": _text_filter(check_truncate),
    "unique": check_unique,
}


# Tests --------------------------------------------------------------------------------------------


def _remainder(environment: MeteredEnvironment, value: Any, divisor: Any = 2) -> Any:
    check_operator(environment.meter, "%", value, divisor)
    return value


def _compare(operator: str) -> Check:
    def check(environment: MeteredEnvironment, value: Any, other: Any) -> Any:
        check_comparison(environment.meter, operator, value, other)
        return value

    return check


TEST_CHECKS: dict[str, Check] = {
    **dict.fromkeys(("boolean", "callable", "defined", "false", "filter"), check_nothing),
    **dict.fromkeys(("float", "integer", "iterable", "mapping", "none"), check_nothing),
    **dict.fromkeys(("number", "sameas", "sequence", "string", "test"), check_nothing),
    **dict.fromkeys(("true", "undefined"), check_nothing),
    **dict.fromkeys(("divisibleby", "even", "odd"), _remainder),
    **dict.fromkeys(("lower", "upper"), _text_filter(check_each_character)),
    **dict.fromkeys(("==", "eq", "equalto"), _compare("eq")),
    **dict.fromkeys(("!=", "ne"), _compare("ne")),
    **dict.fromkeys((">", "gt", "greaterthan"), _compare("gt")),
    **dict.fromkeys((">=", "ge"), _compare("gteq")),
    **dict.fromkeys(("<", "lessthan", "lt"), _compare("lt")),
    **dict.fromkeys(("<=", "le"), _compare("lteq")),
    "in": _compare("in"),
}


# Both ---------------------------------------------------------------------------------------------


def guarded_filters(environment: MeteredEnvironment) -> dict[str, Any]:
    """Return the filters by name."""
    filters: dict[str, Any] = {
        name: _guard(environment, FILTERS[name], check, environment.charged)
        for name, check in FILTER_CHECKS.items()
    }
    filters["safe"] = filters["string"]  # nothing is escaped
    filters["tojson"] = pass_environment(to_json)
    return filters


def guarded_tests(environment: MeteredEnvironment) -> dict[str, Any]:
    """Return the tests by name."""
    return {
        name: _guard(environment, TESTS[name], check, bool) for name, check in TEST_CHECKS.items()
    }


def _guard(
    environment: MeteredEnvironment,
    run: Any,
    check: Check,
    finish: Callable[[Any], Any],
) -> Callable[..., Any]:
    """Return a filter or a test that is charged for before it runs."""
    place = 1 if hasattr(run, "jinja_pass_arg") else 0  # of what it is applied to

    @wraps(run)
    def apply(*args: Any, **named: Any) -> Any:
        environment.meter.work(ACCESS)
        passed, value, given = args[:place], args[place], args[place + 1 :]
        subject = check(environment, value, *given, **named)
        return finish(run(*passed, subject, *given, **named))

    return apply
