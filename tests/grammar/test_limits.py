"""Limits and bounds of schemas: the last that is allowed, and the first that is not."""

import json
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from typing import Any

import jsonschema
import pytest

from py_runtime.base.errors import RequestError
from py_runtime.grammar import finite_automata
from py_runtime.grammar.disjoint import _MAX_DEPTH
from py_runtime.grammar.finite_automata import Dfa, Nfa, TooComplexError, automaton_of_length
from py_runtime.grammar.grammar import check_size
from py_runtime.grammar.keywords import CHECKS, LISTS_OF_SCHEMAS
from py_runtime.grammar.limits import (
    EXACT_DIGITS,
    MAX_COMPARISONS,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_FRACTION_DIGITS,
    MAX_LITERAL_BYTES,
    MAX_NFA_STATES,
    MAX_OPTIONS,
    MAX_PATTERN_STATES,
    MAX_REFERENCES,
    MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_NODES,
    MAX_SCHEMA_VALUES,
    MAX_SHORTEST,
)
from py_runtime.grammar.numbers import Bound, digits_of, number_automaton
from py_runtime.grammar.schema import shape_of
from py_runtime.tokens.characters import LAST_CODE
from tests.grammar.test_language import accepts, automaton

NULL = {"type": "null"}


def alternatives(count: int) -> Any:
    return {"anyOf": [{"type": "string", "minLength": n} for n in range(count)]}


def nested_lists(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def nested_arrays(depth: int) -> Any:
    schema: Any = NULL
    for _ in range(depth):
        schema = {"type": "array", "minItems": 1, "items": schema}
    return schema


def nested_all_of(depth: int) -> Any:
    schema: Any = NULL
    for _ in range(depth - 1):
        schema = {"allOf": [schema]}
    return schema


def places(count: int) -> Any:
    return {"type": "object", "properties": {str(n): {"minLength": n} for n in range(count - 1)}}


def text_of(size: int) -> str:
    """Return a text that takes so many bytes with its quotes."""
    return "a" * (size - 2)


def objects_that_differ_at(depth: int) -> Any:
    branches = []
    for value in (1, 2):
        schema: Any = {"const": value}
        for _ in range(depth):
            schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
        branches.append(schema)
    return {"oneOf": branches}


def cycle(length: int) -> Dfa:
    """All texts whose length is a multiple of this."""
    moves = [[(0, LAST_CODE, (state + 1) % length)] for state in range(length)]
    return Dfa(moves, [state == 0 for state in range(length)])


def states(count: int) -> None:
    nfa = Nfa()
    for _ in range(count):
        nfa.state()


LIMITS: dict[str, tuple[Callable[[int], Any], int]] = {
    "alternatives": (lambda n: shape_of(alternatives(n)), MAX_OPTIONS),
    "values of a schema": (lambda n: check_size([0] * (n - 1)), MAX_SCHEMA_VALUES),
    "lists in lists of a schema": (lambda n: check_size(nested_lists(n)), MAX_SCHEMA_DEPTH - 1),
    "arrays in arrays": (lambda n: shape_of(nested_arrays(n)), MAX_DEPTH),
    "references": (lambda n: shape_of(nested_all_of(n)), MAX_REFERENCES),
    "places": (lambda n: shape_of(places(n)), MAX_SCHEMA_NODES),
    "bytes of enum": (lambda n: shape_of({"enum": [text_of(n)]}), MAX_LITERAL_BYTES),
    "bytes of two enums": (
        lambda n: shape_of({"prefixItems": [{"enum": [text_of(100)]}, {"enum": [text_of(n)]}]}),
        MAX_LITERAL_BYTES - 100,
    ),
    "bytes of names": (
        lambda n: shape_of({"properties": {text_of(n): NULL}}),
        MAX_LITERAL_BYTES,
    ),
    "the shortest text": (
        lambda n: shape_of({"prefixItems": [{"type": "string", "minLength": n}], "minItems": 1}),
        MAX_SHORTEST - 4,
    ),
    "minLength": (lambda n: shape_of({"type": "string", "minLength": n}), MAX_SHORTEST),
    "states of a non-deterministic automaton": (states, MAX_NFA_STATES),
    "a length": (lambda n: automaton_of_length(0, n), MAX_PATTERN_STATES * 8),
    "a least length": (lambda n: automaton_of_length(n, None), MAX_PATTERN_STATES * 8),
    "a repetition": (lambda n: shape_of({"pattern": f"^a{{{n}}}$"}), MAX_PATTERN_STATES - 2),
    "the depth of what oneOf compares": (
        lambda n: shape_of(objects_that_differ_at(n)),
        _MAX_DEPTH,
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_the_last_that_passes(name: str) -> None:
    make, most = LIMITS[name]
    make(most)
    with pytest.raises((RequestError, TooComplexError)):
        make(most + 1)


def test_the_product_of_two_automata_has_so_many_states() -> None:
    """Cycles whose lengths have no common divisor have as many states together as their product."""
    assert MAX_PATTERN_STATES * 8 == 4096
    found = finite_automata.intersect(cycle(17), cycle(241))
    assert found is not None
    assert len(found.moves) == 17 * 241 == 4097
    with pytest.raises(TooComplexError):
        finite_automata.intersect(cycle(6), cycle(683))  # 4098


def test_so_many_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_COMPARISONS > 3
    monkeypatch.setattr("py_runtime.grammar.disjoint.MAX_COMPARISONS", 3)
    shape_of({"oneOf": [{"const": n} for n in range(3)]})  # three pairs
    with pytest.raises(RequestError, match="too many to compare"):
        shape_of({"oneOf": [{"const": n} for n in range(4)]})


# Numbers ------------------------------------------------------------------------------------------


def test_the_digits_of_numbers() -> None:
    whole = number_automaton(None, None, True)
    some = number_automaton(None, None, False)
    above = number_automaton(Bound(Decimal(0), open=False), None, False)
    assert whole is not None
    assert some is not None
    assert above is not None
    for length, allowed in ((MAX_DIGITS, True), (MAX_DIGITS + 1, False)):
        assert whole.matches("9" * length) is allowed
        assert whole.matches("-" + "9" * length) is allowed
        assert some.matches("9" * length) is allowed
        assert above.matches("9" * length) is allowed
    for length, allowed in ((MAX_FRACTION_DIGITS, True), (MAX_FRACTION_DIGITS + 1, False)):
        assert some.matches("0." + "9" * length) is allowed
        assert above.matches("1." + "9" * length) is allowed
    for text, allowed in (("1e99", True), ("1e289", True), ("1e290", False), ("1e300", False)):
        assert some.matches(text) is allowed
        assert float(text) < float("inf")


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ("0." + "3" * (EXACT_DIGITS - 1), True),  # with the 0 before the point
        ("0." + "3" * EXACT_DIGITS, False),
        ("3" * (EXACT_DIGITS - 1) + ".3", True),
        ("3" * EXACT_DIGITS + ".3", False),
        ("3" * 40, True),
        ("3" * 41, False),
    ],
)
def test_the_digits_of_bounds(value: str, allowed: bool) -> None:
    for sign in ("", "-"):
        bound = Bound(Decimal(sign + value), open=False)
        if allowed:
            whole, _, fraction = value.partition(".")
            assert digits_of(bound) == digits_of(bound.negated()) == (whole, fraction)
        else:
            with pytest.raises(ValueError, match="digits"):
                digits_of(bound)


RANGES = [
    {keyword: value}
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    for value in (-10, -1.5, 0, 2, 9.5, 10, 100)
]
NEAR = sorted(
    {
        value + step
        for bound in RANGES
        for value in bound.values()
        for step in (-1, -0.25, 0, 0.25, 1)
    }
)


@pytest.mark.parametrize("bounds", RANGES, ids=str)
def test_bounds_of_numbers_and_of_fixed_values(bounds: dict[str, float]) -> None:
    """Check that what jsonschema allows is accepted, spelled out or as one value of an enum."""
    expected = [value for value in NEAR if jsonschema.Draft202012Validator(bounds).is_valid(value)]
    written = [json.dumps(int(value) if value == int(value) else value) for value in NEAR]
    for schema in ({"type": "number", **bounds}, {"enum": NEAR, **bounds}):
        machine = automaton(schema)
        spelled = written if "type" in schema else map(json.dumps, NEAR)
        found = [value for value, text in zip(NEAR, spelled, strict=True) if accepts(machine, text)]
        assert found == expected


@pytest.mark.parametrize(("left", "right"), [*product(RANGES[::2], repeat=2)], ids=str)
def test_ranges_that_have_nothing_in_common(
    left: dict[str, float], right: dict[str, float]
) -> None:
    """A oneOf of numbers is allowed where no number that is near fits both."""
    common = [
        value
        for value in NEAR
        if all(jsonschema.Draft202012Validator(each).is_valid(value) for each in (left, right))
    ]
    schema = {"oneOf": [{"type": "number", **left}, {"type": "number", **right}]}
    if common:
        with pytest.raises(RequestError, match="could fit both"):
            shape_of(schema)
    else:
        shape_of(schema)


STRINGS: list[dict[str, Any]] = [
    *({"minLength": 2}, {"maxLength": 2}, {"minLength": 1, "maxLength": 2}, {"pattern": "^a+$"}),
    *({"pattern": "b", "maxLength": 1}, {"type": "string"}, {"type": ["string", "null"]}),
    *({"type": "integer"}, {"type": "number"}, {"type": ["boolean", "array"]}),
]
VALUES = ["", "a", "b", "aa", "ab", "aaa", "€€", 1, 1.5, 2.0, True, None]


@pytest.mark.parametrize("beside", STRINGS, ids=str)
def test_fixed_values_agree_with_what_stands_beside_them(beside: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(beside)
    expected = [value for value in VALUES if validator.is_valid(value)]
    machine = automaton({"enum": VALUES, **beside})
    assert [
        value for value in VALUES if accepts(machine, json.dumps(value, ensure_ascii=False))
    ] == expected


# What keywords may hold ---------------------------------------------------------------------------

WHOLE = ([0, 1, MAX_SHORTEST], [-1, 1.0, True, "1", None])
KEYWORD_VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    "type": (["null", ["null", "string"]], ["text", [], ["text"], [None], None, {}]),
    "enum": ([[1], [None]], [[], 1, None, {"a": 1}]),
    "const": ([1, None, [], {}], []),
    "properties": ([{}, {"a": {}}, {"a": True}], [[], {"a": 1}, None, {"a": {}, "b": 1}]),
    "required": ([[], ["a"]], ["a", [1], ["a", 1], None]),
    "additionalProperties": ([True, False, {}], [1, None, []]),
    "items": ([True, {}], [[], [{}], None]),
    "prefixItems": ([[{}], [True, {}]], [[], {}, [1], [{}, 1]]),
    "minItems": (WHOLE[0], [*WHOLE[1], MAX_SHORTEST + 1]),
    "maxItems": ([*WHOLE[0], 10**9], WHOLE[1]),
    "minLength": (WHOLE[0], [*WHOLE[1], MAX_SHORTEST + 1]),
    "maxLength": ([*WHOLE[0], 10**9], WHOLE[1]),
    "pattern": (["", "a"], [1, None]),
    "format": (["date"], [1, None]),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        ([0, -1, 1.5], ["1", True, None, [1]]),
    ),
    **dict.fromkeys(LISTS_OF_SCHEMAS, ([[{}], [True]], [[], {}, [1], [{}, 1], None])),
}


@pytest.mark.parametrize("keyword", [*CHECKS, *LISTS_OF_SCHEMAS])
def test_what_keywords_may_hold(keyword: str) -> None:
    check = (CHECKS | LISTS_OF_SCHEMAS)[keyword]
    good, bad = KEYWORD_VALUES[keyword]
    assert [check(value) for value in good] == [None] * len(good)
    assert all(check(value) for value in bad)


@pytest.mark.parametrize(
    ("keyword", "value", "allowed"),
    [
        *(("uniqueItems", False, True), ("uniqueItems", True, False), ("uniqueItems", None, False)),
        *(("minProperties", 0, True), ("minProperties", 1, False), ("minContains", 0, True)),
        *(("nullable", False, True), ("nullable", True, False), ("nullable", None, False)),
    ],
)
def test_keywords_that_ask_for_nothing(keyword: str, value: Any, allowed: bool) -> None:
    schema = {"type": "null", keyword: value}
    if allowed:
        assert accepts(automaton(schema), "null")
    else:
        with pytest.raises(RequestError, match=keyword):
            shape_of(schema)
