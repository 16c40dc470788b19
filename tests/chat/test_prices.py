"""The price list of chat templates: what each operation is charged for sizes that are known.

A price is written as bounds.py defines it, from the lengths of what is given, with each argument
that may be left out once given and once left out.
"""

from typing import Any

import pytest

from py_runtime.chat import bounds, costs
from py_runtime.chat.bounds import (
    ACCESS,
    CONTAINER,
    ITEM,
    MAX_DIGITS,
    OBJECT,
    POINTER,
    RenderingMeter,
    Weight,
)
from py_runtime.chat.costs import FIELD, NAIVE_SEARCH
from py_runtime.chat.filters import FILTER_CHECKS, SORT_LEVELS, TITLE_PIECE
from py_runtime.chat.methods import CASE_GROWTH, CASE_WORK, LINE_ENDS, METHODS
from tests.chat.charged import Price, price_in_template, price_of

WIDE = "€€€"  # each character beyond ASCII counts as four bytes
SPELLED = 6  # bytes that a character takes at most where it is escaped
LINES = len(LINE_ENDS)
PIECE = OBJECT + 16  # bytes of a piece of a text

WEIGHTS: list[tuple[Any, Weight, int]] = [  # a value, its weight, and the work of weighing it
    ("abc", Weight(1, 3), ITEM),
    (WIDE, Weight(1, 12), ITEM),
    (5, Weight(1, 3), ITEM),
    (None, Weight(1, 0), ITEM),
    (1.5, Weight(1, 0), ITEM),
    ([], Weight(1, 0), CONTAINER + ITEM),
    ((), Weight(1, 0), CONTAINER + ITEM),
    (["ab", 7], Weight(3, 5), CONTAINER + 3 * ITEM + 5),
    ({"ab": 7, "c": WIDE}, Weight(5, 18), CONTAINER + 5 * ITEM + 18),
    ({"ab": 7}.items(), Weight(5, 5), 2 * CONTAINER + 5 * ITEM + 5),
    ({"ab": 7}.keys(), Weight(2, 2), CONTAINER + 2 * ITEM + 2),
    ({"ab": 7}.values(), Weight(2, 3), CONTAINER + 2 * ITEM + 3),
    ([["a"], "b"], Weight(5, 2), 2 * CONTAINER + 5 * ITEM + 2),
]

OPERATORS: list[tuple[str, Any, Any, Price]] = [
    ("+", "ab", "cde", Price(5, 5)),
    ("+", "ab", WIDE, Price(5, 20)),
    ("+", [1], [2, 3], Price(0, 3 * POINTER)),
    ("+", (1,), (2, 3), Price(0, 3 * POINTER)),
    ("+", 1, 2, Price()),
    ("+", "ab", [1], Price()),
    ("+", [1], "ab", Price()),
    ("-", 5, 3, Price()),
    ("*", "ab", 5, Price(10, 10)),
    ("*", 5, "ab", Price(10, 10)),
    ("*", WIDE, 2, Price(6, 24)),
    ("*", "ab", -5, Price()),
    ("*", "ab", 1.5, Price()),
    ("*", [1, 2], 5, Price(0, 10 * POINTER)),
    ("*", 5, (1, 2), Price(0, 10 * POINTER)),
    ("*", [1, 2], -5, Price()),
    ("*", [1, 2], 1.5, Price()),
    ("*", 1.5, 2, Price()),
    ("/", "ab", 2, Price()),
    ("%", 7, 4, Price()),
    ("%", 7.5, "x", Price()),
]

COMPARISONS: list[tuple[str, Any, Any, Price]] = [
    ("eq", "abc", "ab", Price(2)),
    ("ne", "ab", "abcd", Price(2)),
    ("eq", 1, 2, Price()),
    ("eq", "abc", 2, Price()),
    ("eq", [1], "a", Price()),
    ("eq", [1], [1, 2], Price()),
    ("ne", [1], [2], Price(2 * CONTAINER + 4 * ITEM + 1 + 2)),
    ("lt", "abc", "ab", Price(5)),
    ("gteq", 1, 2, Price(2 * ITEM)),
    ("lt", "abc", 2, Price(3 + ITEM)),
    # Each list is weighed first.
    ("gt", ["ab"], [], Price(2 * CONTAINER + 3 * ITEM + 2 + 2 * ITEM + 2 + ITEM)),
    ("lteq", [["ab"]], 1, Price(2 * CONTAINER + 4 * ITEM + 2 + (4 * ITEM + 2) * 4 + ITEM)),
    ("in", "ab", "abcd", Price(4 * 3)),
    ("in", "abcdef", "abcd", Price(4 * 5)),
    ("in", 1, "abcd", Price()),
    ("in", "ab", {"c": 1}, Price(2)),
    ("in", 1, {"c": 1}, Price()),
    ("in", ("ab", 1), {"c": 1}.keys(), Price(CONTAINER + 3 * ITEM + 3)),
    ("in", 1, range(9), Price(1)),
    ("notin", "x", range(9), Price(9 * ITEM)),
    ("in", 1, [1, 2, 3], Price(3 * ITEM)),
    ("in", "ab", [1, 2, 3], Price(3 * ITEM + 3 * 2)),
    ("in", "ab", {"c": 1}.values(), Price(ITEM + 2)),
    ("in", ["ab"], [1], Price(ITEM + 2 * CONTAINER + 4 * ITEM + 2 + 1)),
    ("in", 1, 2, Price()),
]

FORMATS: list[tuple[str, Any, Price]] = [  # with percent signs, after work for the layout
    ("abcd", (), Price(0, 4 * 4)),
    ("%s%s", "ab", Price(2 * (12 + OBJECT), 4 * 4 + 2 * (12 + 2 * OBJECT))),
    ("%3d", 5, Price(3 + 18 + OBJECT, 4 * 3 + 4 * 3 + 18 + 2 * OBJECT)),
    ("%3.2f", 5, Price(5 + 18 + OBJECT, 4 * 5 + 4 * 5 + 18 + 2 * OBJECT)),
    ("%(a7)s", 5, Price(7 + 18 + OBJECT, 4 * 6 + 4 * 7 + 18 + 2 * OBJECT)),
    ("7%s", 5, Price(18 + OBJECT, 4 * 3 + 18 + 2 * OBJECT)),
]

A, AB = 6 + OBJECT, 12 + OBJECT  # the values "a" and "ab", spelled out
BRACES: list[tuple[str, tuple[Any, ...], dict[str, Any], Price]] = [
    ("abcd", (), {}, Price(0, 4 * 4)),
    ("{}{}", ("ab", "a"), {}, Price(2 * (AB + A), 4 * 4 + 2 * (AB + A + OBJECT))),
    ("{b}", (), {"b": "a"}, Price(A, 4 * 3 + A + OBJECT)),
    ("{0:9}c", ("a",), {}, Price(9 + A, 4 * 6 + 4 * 9 + A + OBJECT)),
    ("{{}}", ("a",), {}, Price(0, 4 * 4)),
]

SEARCH = 6 * 3  # the work of looking for two characters in six
CASE = Price((CASE_WORK + CASE_GROWTH) * 3, CASE_GROWTH * 3)
KEY = CONTAINER + 3 * ITEM + 3  # the work of looking up the key ("ab", 1)

METHOD_PRICES: list[tuple[Any, str, tuple[Any, ...], Price]] = [
    *(("abc", name, (), CASE) for name in ("capitalize", "casefold", "lower", "swapcase")),
    *(("abc", name, (), CASE) for name in ("title", "upper")),
    (WIDE, "upper", (), Price((CASE_WORK + CASE_GROWTH) * 3, CASE_GROWTH * 12)),
    *(("abc", name, (), Price(3 * CASE_WORK)) for name in METHODS[str] if name.startswith("is")),
    ("abc", "strip", (), Price(3 + 3, 3)),
    ("abc", "lstrip", ("xy",), Price(3 * 3 + 3, 3)),
    (WIDE, "rstrip", (None,), Price(3 + 3, 12)),
    ("abcdef", "startswith", ("ab",), Price(ITEM + 2)),
    ("abcdef", "startswith", ("ab", 1), Price(ITEM + 2)),
    ("ab", "endswith", (("abc", "b", 1),), Price(3 * ITEM + 3)),
    ("abc", "removeprefix", ("ab",), Price(ITEM + 2 + 3, 3)),
    (WIDE, "removesuffix", ("ab",), Price(ITEM + 2 + 3, 12)),
    ("abcdef", "find", ("ab",), Price(SEARCH)),
    ("abcdef", "count", ("ab", 1, 2), Price(SEARCH)),
    ("abcdef", "index", (1,), Price()),
    ("abcdef", "rfind", ("ab",), Price(SEARCH)),
    ("abcdef", "rindex", (1,), Price()),
    ("a" * NAIVE_SEARCH, "find", ("ab",), Price(8 * NAIVE_SEARCH + 2)),
    ("a" * NAIVE_SEARCH, "rfind", ("ab",), Price(3 * NAIVE_SEARCH)),
    ("a" * (NAIVE_SEARCH - 1), "find", ("ab",), Price(3 * (NAIVE_SEARCH - 1))),
    ("abcdef", "partition", ("ab",), Price(SEARCH + 6, 6)),
    ("abcdef", "rpartition", ("ab",), Price(SEARCH + 6, 6)),
    ("a" * NAIVE_SEARCH, "rpartition", ("ab",), Price(4 * NAIVE_SEARCH, NAIVE_SEARCH)),
    ("a b c ", "split", (), Price(4 * ITEM + 6, 4 * PIECE + 6, 4 * PIECE + 6)),
    ("a b c ", "split", (None, 1), Price(2 * ITEM + 6, 2 * PIECE + 6, 2 * PIECE + 6)),
    ("a b c ", "split", ("", 0), Price(ITEM + 6, PIECE + 6, PIECE + 6)),
    ("a,,b,,", "split", (",,",), Price(SEARCH + 3 * ITEM + 6, 3 * PIECE + 6, 3 * PIECE + 6)),
    ("a,,b,,", "split", (",,", 1), Price(SEARCH + 2 * ITEM + 6, 2 * PIECE + 6, 2 * PIECE + 6)),
    ("a,,b,,", "rsplit", (",,",), Price(2 * SEARCH + 3 * ITEM + 6, 3 * PIECE + 6, 3 * PIECE + 6)),
    ("a b c ", "rsplit", (), Price(4 * ITEM + 6, 4 * PIECE + 6, 4 * PIECE + 6)),
    ("a b c ", "rsplit", (None, 2), Price(3 * ITEM + 6, 3 * PIECE + 6, 3 * PIECE + 6)),
    (WIDE, "split", (), Price(2 * ITEM + 3, 2 * PIECE + 12, 2 * PIECE + 12)),
    ("a\nb", "splitlines", (), Price((LINES + 1) * 3 + 2 * ITEM, 2 * PIECE + 3, 2 * PIECE + 3)),
    ("a,,b,,", "replace", (",,", "xyz"), Price(SEARCH + 12, 12)),
    ("a,,b,,", "replace", (",,", "xyz", 1), Price(SEARCH + 9, 9)),
    ("a,,b,,", "replace", (",,", WIDE, 0), Price(SEARCH + 6, 24)),
    ("a,,b,,", "replace", (1, "x"), Price()),
    ("a,,b,,", "replace", ("x", 1), Price()),
    # A list counts as one more item than it has.
    (
        "--",
        "join",
        (["ab", "c"],),
        Price(CONTAINER + 3 * ITEM + 3 + 3 * (ITEM + 2), 4 * (3 + 3 * 2)),
    ),
    ("€", "join", (["a"],), Price(CONTAINER + 2 * ITEM + 1 + 2 * (ITEM + 4), 4 * (1 + 2 * 4))),
    ("", "join", ([],), Price(CONTAINER + ITEM + ITEM, POINTER)),
    ("", "join", (WIDE,), Price(ITEM + 3 * ITEM, 3 * (POINTER + PIECE))),
    ("-", "join", ("abc",), Price(ITEM + 3 * (ITEM + 1), 24)),
    ("abc", "center", (9,), Price(9, 9)),
    ("abc", "ljust", (2,), Price(3, 3)),
    ("abc", "rjust", (9, "€"), Price(9, 36)),
    ("abc", "zfill", (9,), Price(9, 9)),
    ([1, 2, 3], "copy", (), Price(3 * ITEM, 3 * (POINTER + OBJECT))),
    ([1, 2, 3], "index", ("ab",), Price(3 * ITEM + 6)),
    ((1, 2), "count", (1, 5), Price(2 * ITEM)),
    (range(9), "index", (1,), Price(1)),
    ({"a": 1}, "copy", (), Price(ITEM, POINTER + OBJECT)),
    ({"a": 1}, "get", ("abc",), Price(3)),
    ({"a": 1}, "get", (("ab", 1), 5), Price(KEY)),
    ({"a": 1}, "items", (), Price()),
    (1.5, "is_integer", (), Price()),
]

LISTED = Price(2 * ITEM, 4 * POINTER)  # the items of a list of two
WEIGHED = CONTAINER + 3 * ITEM  # a list of two texts, without its characters
KEYS = 2 * (CONTAINER + 2 * ITEM + 1)  # sort makes each key a list of one
ORDERED = SORT_LEVELS + 1  # comparisons of each of two items

FILTER_PRICES: list[tuple[str, tuple[Any, ...], dict[str, Any], Price]] = [
    *((name, ("abc",), {}, Price()) for name in ("abs", "default", "first", "last", "length")),
    ("map", ([1, 2],), {}, Price(2 * ITEM)),
    ("select", (iter([1, 2]),), {}, Price()),
    ("capitalize", ("abc",), {}, CASE),
    ("int", ("5" * MAX_DIGITS,), {}, Price()),
    ("list", ([1, 2],), {}, LISTED),
    ("list", (WIDE,), {}, Price(3 * ITEM, 6 * (POINTER + PIECE))),
    ("reverse", ("abc",), {}, Price(3 * ITEM, 6 * POINTER)),
    ("list", (5,), {}, Price()),
    ("batch", ([1, 2], 9), {}, Price(2 * ITEM, 9 * POINTER)),
    ("slice", ([1, 2], -9), {"fill_with": 10}, Price(2 * ITEM, 10 * POINTER)),
    ("center", ("abc",), {}, Price(80, 80)),
    ("center", ("abc", 5), {}, Price(5, 5)),
    ("string", ("abc",), {}, Price()),
    ("string", (5,), {}, Price(ITEM + 18 + OBJECT, 18 + OBJECT, 1)),
    ("title", ("abc",), {}, Price((CASE_WORK + ITEM) * 3, (CASE_GROWTH * 4 + TITLE_PIECE) * 3)),
    ("trim", ("abc",), {}, Price(6, 3)),
    ("trim", ("abc", "xy"), {}, Price(12, 3)),
    ("truncate", ("abc",), {}, Price(6, 6)),
    ("truncate", ("abc", 2, True, "€"), {}, Price(7, 28)),
    ("truncate", ("abc",), {"end": "--"}, Price(8, 8)),
    # Two lines, and one that may follow; four spaces and two more characters before each.
    ("indent", ("a\nb",), {}, Price(LINES * 3 + 3 * ITEM + 6 + 18, 3 * (OBJECT + POINTER))),
    ("indent", ("a\nb", 90), {}, Price(LINES * 3 + 3 * ITEM + 6 + 276, 282)),
    ("indent", ("a\nb", -5), {}, Price(LINES * 3 + 3 * ITEM + 6 + 6, 3 * (OBJECT + POINTER))),
    ("indent", ("a", "€" * 90), {}, Price(LINES + 2 * ITEM + 2 + 184, 4 * 186)),
    ("replace", ("a,,b,,", ",,", "xyz"), {}, Price(SEARCH + 12, 12)),
    ("replace", ("a,,b,,", ",,", "xyz", 1), {}, Price(SEARCH + 9, 9)),
    ("round", (1.5,), {}, Price()),
    ("sum", ([1, 2],), {}, LISTED),
    (
        "join",
        (["a", "b"],),
        {},
        Price(2 * ITEM + 2 * (WEIGHED + 2) + 12 + 3 * OBJECT + 3 * ITEM, 12 + 3 * OBJECT),
    ),
    (
        "join",
        ([{"k": "a"}, {"k": "b"}], "€" * 99, "k"),
        {},
        Price(
            2 * ITEM + 2 * (WEIGHED + 2) + 12 + 3 * OBJECT + 3 * (ITEM + 396) + 2 * (ACCESS + 1),
            4 * (2 + 3 * 396),
        ),
    ),
    (
        "sort",
        (["a", "b"],),
        {},
        Price(
            LISTED.work
            + (CONTAINER + 3 * ITEM + KEYS)
            + 2 * CASE_WORK
            + KEYS
            + ORDERED * 2 * (ITEM + 2 * ITEM + 1),
            2 * (OBJECT + POINTER),
            2 * (OBJECT + POINTER) + 2 * CASE_GROWTH,
        ),
    ),
    (
        "sort",
        (["a", "b"],),
        {"case_sensitive": True},
        Price(
            LISTED.work
            + (CONTAINER + 3 * ITEM + KEYS)
            + KEYS
            + ORDERED * 2 * (ITEM + 2 * ITEM + 1),
            2 * (OBJECT + POINTER),
            2 * (OBJECT + POINTER),
        ),
    ),
    (
        "dictsort",
        ({"a": "xyz", "b": "xyz"},),
        {},
        Price(
            WEIGHED + 2 + 2 * CASE_WORK + ORDERED * 2 * (ITEM + 1),
            2 * (POINTER + OBJECT),
            2 * CASE_GROWTH,
        ),
    ),
    (
        "dictsort",
        ({"a": "xyz", "b": "xyz"}, True, "value"),
        {},
        Price(WEIGHED + 6 + ORDERED * 2 * (ITEM + 3), 2 * (POINTER + OBJECT)),
    ),
    ("dictsort", ([1],), {}, Price()),
    (
        "max",
        (["a", "b"],),
        {},
        Price(LISTED.work + WEIGHED + 2 + 2 * CASE_WORK + 4, LISTED.room, 2 * CASE_GROWTH),
    ),
    ("min", (["a", "b"], True), {}, Price(LISTED.work + WEIGHED + 2 + 4, LISTED.room)),
    (
        "unique",
        (["a", "b"],),
        {},
        Price(LISTED.work + WEIGHED + 2 + 2 * CASE_WORK, 4 * OBJECT, 2 * CASE_GROWTH),
    ),
    ("unique", (["a", "b"], True), {}, Price(LISTED.work + WEIGHED + 2, 4 * OBJECT)),
    (
        "unique",
        ([1.5, "ab"], True),
        {},
        Price(LISTED.work + 2 * (WEIGHED + 2) + 2 * (3 + 2), 4 * OBJECT),
    ),
]


@pytest.mark.parametrize(("value", "weight", "work"), WEIGHTS)
def test_the_weight_of_values(value: Any, weight: Weight, work: int) -> None:
    meter = RenderingMeter()
    assert bounds.weigh(meter, value) == weight
    assert meter.work_done == work
    assert weight.spelled == SPELLED * weight.characters + OBJECT * weight.items


@pytest.mark.parametrize(("operator", "left", "right", "price"), OPERATORS)
def test_operators(operator: str, left: Any, right: Any, price: Price) -> None:
    assert price_of(costs.check_operator, operator, left, right) == price


@pytest.mark.parametrize(("operator", "left", "right", "price"), COMPARISONS)
def test_comparisons(operator: str, left: Any, right: Any, price: Price) -> None:
    assert price_of(costs.check_comparison, operator, left, right) == price


@pytest.mark.parametrize(("layout", "given", "price"), FORMATS)
def test_formats_with_percent_signs(layout: str, given: Any, price: Price) -> None:
    walk = price_of(bounds.weigh, given).work
    work = FIELD * layout.count("%") + 2 * len(layout) + walk + price.work
    assert price_of(costs.check_operator, "%", layout, given) == price._replace(work=work)
    named = given if isinstance(given, tuple) else (given,)
    assert price_in_template(FILTER_CHECKS["format"], layout, *named).room >= price.room


@pytest.mark.parametrize(("layout", "given", "named", "price"), BRACES)
def test_formats_in_braces(
    layout: str, given: tuple[Any, ...], named: dict[str, Any], price: Price
) -> None:
    walk = sum(price_of(bounds.weigh, value).work for value in (*given, *named.values()))
    work = FIELD * layout.count("{") + 2 * len(layout) + walk + price.work
    check = METHODS[str]["format"]
    assert price_of(check, layout, *given, **named) == price._replace(work=work)


@pytest.mark.parametrize(("owner", "name", "args", "price"), METHOD_PRICES)
def test_methods(owner: Any, name: str, args: tuple[Any, ...], price: Price) -> None:
    assert price_of(METHODS[type(owner)][name], owner, *args) == price


@pytest.mark.parametrize(("name", "args", "named", "price"), FILTER_PRICES)
def test_filters(name: str, args: tuple[Any, ...], named: dict[str, Any], price: Price) -> None:
    assert price_in_template(FILTER_CHECKS[name], *args, **named) == price


def test_every_method_and_filter_has_a_price() -> None:
    priced = {(type(owner), name) for owner, name, _, _ in METHOD_PRICES}
    free = {(dict, "keys"), (dict, "values"), (str, "format")}  # the last has a list of its own
    alike = {(list, "count"), (tuple, "index"), (range, "count")}
    assert {(kind, name) for kind, checks in METHODS.items() for name in checks} == (
        priced | free | alike
    )
