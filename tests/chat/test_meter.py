"""The meter of a rendering: each bound holds at its last unit, and what is made is charged.

What a value takes is told by Python itself: its size, and the length of its text.
"""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from py_runtime.chat import bounds
from py_runtime.chat.bounds import (
    ACCESS,
    CONTAINER,
    ITEM,
    MAX_BITS,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_MADE,
    MAX_MESSAGE,
    MAX_OUTPUT,
    MAX_STEPS,
    MAX_WORK,
    OBJECT,
    POINTER,
    RenderingMeter,
)
from py_runtime.chat.costs import (
    LARGEST_KEY,
    check_brace_format,
    check_digits,
    check_integer,
    check_new_keys,
    check_operator,
    check_percent_format,
)
from py_runtime.chat.environment import NODE_WORK, GuardedEnvironment
from py_runtime.chat.errors import ChatTemplateError
from py_runtime.chat.filters import FILTER_CHECKS, as_text
from tests.chat.charged import Price, TellingMeter, price_in_template, price_of, rendered

BUDGETS: dict[str, tuple[Callable[[RenderingMeter, int], None], int]] = {
    "work": (RenderingMeter.work, MAX_WORK),
    "room": (RenderingMeter.expect, MAX_MADE),
    "bytes": (RenderingMeter.make, MAX_MADE),
    "output": (RenderingMeter.show, MAX_OUTPUT),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_can_be_spent_to_the_last_unit(name: str) -> None:
    spend, most = BUDGETS[name]
    spend(RenderingMeter(), most)
    with pytest.raises(ChatTemplateError):
        spend(RenderingMeter(), most + 1)


def test_what_was_spent_adds_up() -> None:
    meter = RenderingMeter()
    for charge in (meter.work, meter.make, meter.show):
        charge(3)
        charge(4)
    meter.expect(50)
    meter.step()
    assert (meter.work_done, meter.bytes_made, meter.characters_shown, meter.steps) == (7, 7, 7, 1)


def test_the_last_step() -> None:
    meter = RenderingMeter()
    meter.steps = MAX_STEPS - 1
    meter.step()
    with pytest.raises(ChatTemplateError, match="steps"):
        meter.step()


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


LIMITS: dict[str, tuple[Callable[[int], Any], int]] = {
    "depth": (lambda depth: bounds.weigh(RenderingMeter(), nested(depth)), MAX_DEPTH),
    "bits": (lambda bits: check_integer(1 << bits - 1), MAX_BITS),
    "digits": (check_digits, MAX_DIGITS),
    "negative digits": (lambda digits: check_digits(-digits), MAX_DIGITS),
    "a width": (lambda n: check_percent_format(RenderingMeter(), f"%{n}d", 1), MAX_DIGITS),
    "a precision": (lambda n: check_percent_format(RenderingMeter(), f"%.{n}f", 1), MAX_DIGITS),
    "a width in braces": (
        lambda n: check_brace_format(RenderingMeter(), f"{{:{n}}}", [1]),
        MAX_DIGITS,
    ),
    "a number's text": (
        lambda n: price_in_template(FILTER_CHECKS["float"], "5" * n),
        MAX_DIGITS,
    ),
    "a precision of round": (
        lambda n: price_in_template(FILTER_CHECKS["round"], 1.5, n),
        MAX_DIGITS,
    ),
    "a product": (
        lambda bits: check_operator(RenderingMeter(), "*", 1 << 99, 1 << bits - 100),
        MAX_BITS,
    ),
    "a power": (lambda bits: check_operator(RenderingMeter(), "**", 3, bits), MAX_BITS),
    "a key": (lambda key: check_new_keys(RenderingMeter(), [key]), LARGEST_KEY - 1),
    "a negative key": (lambda key: check_new_keys(RenderingMeter(), [-key]), LARGEST_KEY - 1),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_the_last_that_passes(name: str) -> None:
    check, most = LIMITS[name]
    check(most)
    with pytest.raises(ChatTemplateError):
        check(most + 1)


@pytest.mark.parametrize("power", [(2, 0), (1 << 5000, 0), (0, 9999), (1, 9999), (2, -9999)])
def test_powers_that_are_small(power: tuple[int, int]) -> None:
    assert price_of(check_operator, "**", *power) == Price()


def test_the_price_of_keys() -> None:
    price = price_of(check_new_keys, ["abc", None, 7])
    assert price == Price(3 * ITEM + 3, 3 * (OBJECT + 5 * POINTER))
    made = dict.fromkeys(map(str, range(1000)))
    assert price_of(check_new_keys, list(made)).room >= sys.getsizeof(made)


def test_an_error_is_shortened() -> None:
    assert bounds.shorten("x" * MAX_MESSAGE) == "x" * MAX_MESSAGE
    assert bounds.shorten("x" * (MAX_MESSAGE + 1)) == "x" * MAX_MESSAGE + "…"


def test_what_an_iterator_yields_is_counted() -> None:
    meter = RenderingMeter()
    assert bounds.listed(meter, iter([[1, 2, 3], (4,), "abc"])) == [[1, 2, 3], (4,), "abc"]
    assert (meter.steps, meter.bytes_made) == (3, 4 * POINTER + 2 * OBJECT)
    kept = [1]
    assert bounds.listed(meter, kept) is kept
    assert meter.steps == 3


# Values that are made -----------------------------------------------------------------------------

VALUES: list[Any] = [
    *("", "abc", "é" * 50, "€" * 50, "💚" * 50, 0, -1, 7**99, 1.5, None, True, [], {}, ()),
    *([1, "a", None], {"a": [1, {"b": 2}]}, ("x",), ["\n" * 20, "\x00" * 20], {1: "💚" * 9}),
    *([[[]]] * 9, list(range(500)), {str(n): n for n in range(100)}),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_the_text_of_a_value_fits_in_the_room_that_is_asked_for(value: Any) -> None:
    spelled = bounds.spelled_bytes(RenderingMeter(), value)
    assert spelled >= len(str(value).encode())
    assert bounds.weigh(RenderingMeter(), value).spelled >= len(str(value).encode())
    if not isinstance(value, str):
        price = price_of(as_text, value)
        assert price.room == spelled
        assert price.made == len(str(value))
        assert price.work == spelled + price_of(bounds.weigh, value).work
    else:
        assert price_of(as_text, value) == Price()


EXPRESSIONS = [
    *("x + x", "x * 5", "5 * x", "x ~ x ~ 1", "x[:]", "x[::2]", "x | list", "x | list | reverse"),
    *("x | center(300)", "x.upper()", "x.center(300, '€')", "x | indent(9)"),
    *("x.replace('a', 'bcd')", "x | replace('a', '💚')", "x.split('a')", "x.split()", "x.strip()"),
    *(
        "'--'.join(x)",
        "x | join('--')",
        "x | title",
        "x.splitlines()",
        "x | truncate(9, true, '…')",
    ),
    *("'%9s|%s' % (x, x)", "'{:300}{}'.format(x, x)", "x.rsplit('b')"),
    *("x.partition('b')", "x.ljust(99)", "x.zfill(99)", "x | sort", "x | unique | list"),
    *("{x: x}", "dict([[x, x]])", "x | batch(3) | list", "x | slice(3) | list"),
]
TEXTS = [text * times for text in ("a", "ab \n", "ß", "€b", "💚a") for times in (1, 100, 3000)]


class ComparingEnvironment(GuardedEnvironment):
    """An environment that compares each result with the room that was asked for before."""

    compared_results = 0

    def charged(self, value: Any) -> Any:
        if isinstance(value, str | list | tuple | dict):
            contents = sys.getsizeof(value) - sys.getsizeof(type(value)())
            assert isinstance(self.meter, TellingMeter)
            assert self.meter.room + OBJECT >= contents
            self.compared_results += 1
        return super().charged(value)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_result_takes_no_more_than_was_asked_for(expression: str) -> None:
    """Python itself tells how much that is."""
    for text in TEXTS:
        environment = ComparingEnvironment()
        template = environment.from_string(f"{{% set _ = {expression} %}}")
        environment.meter = TellingMeter()
        template.render(x=text)
        assert environment.compared_results


# What a template is charged for besides its operations -------------------------------------------


def test_looking_up_costs_the_same_whatever_is_found() -> None:
    for source, key in (("{{ x.a }}", 0), ("{{ x['a'] }}", 1)):
        _, meter = rendered(source, x={"a": "1"})
        assert (meter.work_done, meter.steps) == (ACCESS + key, 1)


def metered(method: str, *args: Any) -> tuple[Any, TellingMeter]:
    environment = GuardedEnvironment()
    environment.meter = meter = TellingMeter()
    return getattr(environment, method)(*args), meter


def test_what_is_written_is_shown() -> None:
    assert metered("write", "€€")[1].characters_shown == 2
    text, meter = metered("write", 12345)
    assert (text, meter.characters_shown, meter.steps) == ("12345", 5, 1)


def test_texts_that_are_put_together() -> None:
    text, meter = metered("concatenate", "ab", "€", 5)
    size = 2 + 4 + 6 * 3 + OBJECT
    assert text == "ab€5"
    assert meter.price == Price(ITEM + size, 4 * size, sys.getsizeof(text))
    assert meter.steps == 1


@pytest.mark.parametrize(
    ("value", "part", "work", "room"),
    [
        ("abcdef", (1, None, 2), 3, 3),
        ("€€€€€€", (1, None, 2), 3, 12),
        ([1, 2, 3, 4], (None, 3, None), 3, 3 * POINTER),
        ((1, 2, 3, 4), (None, None, -1), 4, 4 * POINTER),
        (range(9), (1, 2, None), 0, 0),
    ],
)
def test_slices(value: Any, part: tuple[Any, Any, Any], work: int, room: int) -> None:
    found, meter = metered("slice_value", value, *part)
    assert found == value[slice(*part)]
    size = sys.getsizeof(found)
    assert meter.price == Price(work, max(room, size), size)
    assert meter.steps == 1


def test_an_object_that_is_made() -> None:
    made, meter = metered("make_object", "a", 1, "bc", 2)
    assert made == {"a": 1, "bc": 2}
    assert meter.work_done == 2 * ITEM + 3
    assert meter.bytes_made == sys.getsizeof(made)


def test_comparisons_in_a_chain() -> None:
    found, meter = metered("compare", 1, "lt", 2, "lt", 3)
    assert (found, meter.steps, meter.work_done) == (True, 2, 4 * ITEM)
    found, meter = metered("compare", 2, "lt", 1, "lt", 3)
    assert (found, meter.steps, meter.work_done) == (False, 1, 2 * ITEM)
    found, meter = metered("compare", 1, "notin", iter([2, 3]))
    assert (found, meter.steps, meter.work_done) == (True, 3, 2 * ITEM)


def test_the_body_of_a_loop() -> None:
    found, meter = metered("begin_body", 7)
    assert (found, meter.steps, meter.work_done) == (True, 1, 7 * NODE_WORK)


def test_json_is_charged_by_its_pieces() -> None:
    text, meter = rendered("{{ x | tojson }}", x=["a", "b"])
    assert text == '["a", "b"]'
    weight = CONTAINER + 3 * ITEM + 2
    spelled = 6 * 2 + 3 * OBJECT
    assert meter.price == Price(weight + spelled, spelled, len(text) + 3 * POINTER)
