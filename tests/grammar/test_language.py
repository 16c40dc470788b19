"""The exact language of schemas, byte by byte: the last allowed text and the first that is not.

Wherever a text stops, what is said to make it whole does, as jsonschema sees it.
"""

import json
from itertools import product
from typing import Any

import jsonschema
import pytest

from py_runtime.base.errors import RequestError
from py_runtime.grammar.schema import any_object, shape_of
from py_runtime.grammar.stack_automaton import StackAutomaton
from tests.grammar.vocabularies import TOY, texts_of

Schema = dict[str, Any]
INT = {"type": "integer"}


def automaton(schema: Schema | None) -> StackAutomaton:
    root = any_object() if schema is None else shape_of(schema)
    return StackAutomaton(root, texts_of(TOY))


def state_after(machine: StackAutomaton, text: str) -> int:
    """0 where it is not allowed."""
    state = machine.start
    for byte in text.encode():
        state = machine.step(state, byte)
    return state


def accepts(machine: StackAutomaton, text: str) -> bool:
    state = state_after(machine, text)
    return bool(state) and machine.is_whole(state)


def obj(*required: str, more: Any = False, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": more,
    }


def array(items: Any = None, **options: Any) -> Schema:
    return {"type": "array", "items": INT if items is None else items, **options}


PAIR = obj("b", a=INT, b=INT, c=INT)
NESTED = obj("x", x=array(obj("y", y=INT)))
LANGUAGES: dict[str, tuple[Schema, list[str], list[str]]] = {
    "required and optional properties, in order": (
        PAIR,
        ['{"b":1}', '{"a":1,"b":2}', '{"b":1,"c":2}', '{"a":1,"b":2,"c":3}'],
        ["{}", '{"a":1}', '{"c":1}', '{"a":1,"c":2}', '{"b":1,"a":2}', '{"b":1,"b":2}', '{"b":1,}'],
    ),
    "names that begin alike": (
        obj("ab", a=INT, ab=INT, abc=INT, abd=INT),
        ['{"ab":1}', '{"a":1,"ab":2,"abd":3}', '{"ab":1,"abc":2,"abd":3}', '{"ab":1,"abd":3}'],
        ['{"abc":1}', '{"a":1}', '{"ab":1,"a":2}', '{"ab":1,"abd":1,"abc":1}', '{"abx":1}'],
    ),
    "other properties behind those that are named": (
        obj("a", a=INT, b=INT, more={"type": "boolean"}),
        [
            '{"a":1}',
            '{"a":1,"z":true}',
            '{"a":1,"b":2,"z":true,"y":false}',
            '{"a":1,"z":true,"z":true}',
        ],
        ['{"z":true,"a":1}', '{"a":1,"z":1}', '{"a":1,"z":true,"b":2}', '{"z":true}', "{}"],
    ),
    "nothing but other properties": (
        {"type": "object", "additionalProperties": INT},
        ["{}", '{"a":1}', '{"a":1,"b":2}', '{"":1}'],
        ['{"a":true}', '{"a"}', '{"a":}', "{,}", "{1}"],
    ),
    "gaps of objects": (
        PAIR,
        [
            ' {"b":1}',
            '{ "b": 1}',
            '{\n"b": 1\n}',
            '{\n    "b": 1 }',
            '{\n\t"b": 1,\n\t"c": 2\n}',
            '{"b":1, "c":2}',
            '{"b":1,\n    "c":2}',
        ],
        [
            '{  "b": 1}',
            '{"b" : 1}',
            '{"b":  1}',
            '{"b":\n1}',
            '{"b":1 , "c":2}',
            '{\n     "b": 1}',
            '{\n\t\t"b": 1}',
            '{\n \t"b": 1}',
            '{\n\t "b": 1}',
            '{\n\n"b": 1}',
            '{\t"b": 1}',
            '{"b": 1\n }',
            '{"b": 1\n\t}',
            '{"b": 1  }',
            '  {"b":1}',
        ],
    ),
    "gaps of what is nested": (
        NESTED,
        [
            '{\n    "x": [\n        {\n            "y": 1\n        }\n    ]\n}',
            '{\n\t"x": [\n\t\t{\n\t\t\t"y": 1\n\t\t}\n\t]\n}',
            '{"x":[ {"y":1 } ] }',
            '{"x":[]}',
        ],
        [
            '{"x":[\n         {"y":1}]}',
            '{"x":[\n\t\t\t{"y":1}]}',
            '{"x":[{"y":1}\n     ]}',
            '{"x":[{"y":1}\n\t\t]}',
            '{"x":[{"y":1\n         }]}',
            '{"x":[{"y":1\n\t\t\t}]}',
            '{"x":[  {"y":1}]}',
        ],
    ),
    "an object without properties": (obj(), ["{}"], ["{ }", "{\n}", '{"a":1}']),
    "any number of items": (
        array(),
        ["[]", "[1]", "[1,2,3,4,5,6]", "[ 1, 2 ]", "[\n    1,\n    2\n]"],
        ["[,]", "[1,]", "[,1]", "[1 2]", "[true]", "[1 , 2]", "[1]]", "["],
    ),
    "two or three items": (
        array(minItems=2, maxItems=3),
        ["[1,2]", "[1,2,3]"],
        ["[]", "[1]", "[1,2,3,4]", "[1,2,]", "[1,2,3,]"],
    ),
    "exactly two items": (array(minItems=2, maxItems=2), ["[1,2]"], ["[1]", "[1,2,3]", "[]"]),
    "at least two items": (array(minItems=2), ["[1,2]", "[1,2,3,4]"], ["[1]", "[]"]),
    "at most one item": (array(maxItems=1), ["[]", "[1]"], ["[1,2]"]),
    "items by their place": (
        {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "null"}], "items": INT},
        ["[]", "[true]", "[true,null]", "[true,null,1]", "[true,null,1,2]"],
        ["[1]", "[true,1]", "[true,null,true]", "[null]"],
    ),
    "items by their place, and so many": (
        {
            "type": "array",
            "prefixItems": [{"type": "boolean"}, {"type": "null"}],
            "items": INT,
            "minItems": 3,
            "maxItems": 4,
        },
        ["[true,null,1]", "[true,null,1,2]"],
        ["[true,null]", "[true,null,1,2,3]", "[]"],
    ),
    "items by their place, and no others": (
        {"type": "array", "prefixItems": [{"type": "boolean"}], "items": False},
        ["[]", "[true]"],
        ["[true,1]", "[1]"],
    ),
    "strings of a length": (
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', '"abc"', '"äö"', '"😀😀😀"', r'"\n\u0041"', r'"\ud83d\ude00x"'],
        ['""', '"a"', '"abcd"', '"😀"', r'"\ud83d\ude00"', '"ab', "ab", '"a\nb"', '"a\x7f"x'],
    ),
    "strings of exactly one": ({"type": "string", "minLength": 1, "maxLength": 1}, ['"a"'], ['""']),
    "strings of at least one": ({"type": "string", "minLength": 1}, ['"a"', '"ab"'], ['""']),
    "strings with escapes": (
        {"type": "string"},
        [
            '""',
            r'"\"\\\/\b\f\n\r\t"',
            r'"\u0000\u001f\uFFff"',
            '"\x7f"',
            '"\u2028"',
            r'"\uD800\uDC00"',
        ],
        [
            '"\x00"',
            '"\x1f"',
            r'"\a"',
            r'"\u12"',
            r'"\u12g4"',
            r'"\uD800"',
            r'"\uDC00"',
            r'"\uD800x"',
        ],
    ),
    "whole numbers": (
        INT,
        ["0", "-1", "10", "123456789012345678", "-9"],
        ["00", "01", "-", "-0", "1.0", "1e3", "+1", "1234567890123456789", ""],
    ),
    "whole numbers within bounds": (
        {"type": "integer", "minimum": -12, "maximum": 105},
        ["-12", "-11", "-10", "-9", "-1", "0", "1", "9", "10", "99", "100", "104", "105"],
        ["-13", "-20", "-100", "106", "110", "111", "200", "1000"],
    ),
    "whole numbers between open bounds": (
        {"type": "integer", "exclusiveMinimum": 7, "exclusiveMaximum": 10},
        ["8", "9"],
        ["7", "10", "-8", "80"],
    ),
    "one whole number alone": (
        {"type": "integer", "minimum": 42, "maximum": 42},
        ["42"],
        ["41", "43", "4"],
    ),
    "numbers within bounds": (
        {"type": "number", "minimum": 0.5, "maximum": 12.25},
        ["0.5", "0.51", "1", "12", "12.25", "12.2", "9.99", "0.50"],
        ["0.4", "0.49", "12.26", "12.3", "13", "0", "-1", "0.", ".5", "1.", "00.5"],
    ),
    "words that stand alone": (
        {"enum": [None, True, False, 1, "a", "ab"]},
        ["null", "true", "false", "1", '"a"', '"ab"'],
        ["nul", "True", '"b"', '"abc"', '""', "10", "nulll"],
    ),
    "one value alone": (
        {"const": {"a": [1, "x"]}},
        ['{"a":[1,"x"]}'],
        ['{"a":[1]}', "{}", '{"a":[1,"y"]}'],
    ),
    "one of several": (
        {"anyOf": [array(maxItems=1), {"type": "string", "maxLength": 1}, obj("a", a=INT)]},
        ["[]", "[1]", '"x"', '""', '{"a":1}'],
        ["[1,2]", '"xy"', "{}", "1"],
    ),
    "both of two": (
        {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}]},
        ["3", "4", "5"],
        ["2", "6", "35"],
    ),
}
JSON_MODE = (
    ["{}", '{"a":{}}', '{"a":[{"b":null}],"c":-1.5e-3}', '{"a": [ 1, "x" ] }'],
    ["[]", "1", '{"a":1e}', '{"a":1e400}', '{"a":--1}', "{a:1}", ""],
)


@pytest.mark.parametrize("name", LANGUAGES)
def test_what_is_allowed_and_what_is_not(name: str) -> None:
    schema, allowed, refused = LANGUAGES[name]
    machine = automaton(schema)
    for text in allowed:
        jsonschema.validate(json.loads(text), schema)
        assert accepts(machine, text), text
    for text in refused:
        assert not accepts(machine, text), text


def test_json_mode() -> None:
    machine = automaton(None)
    assert [text for text in JSON_MODE[0] if not accepts(machine, text)] == []
    assert [text for text in JSON_MODE[1] if accepts(machine, text)] == []


@pytest.mark.parametrize("name", LANGUAGES)
def test_wherever_a_text_stops_it_can_be_made_whole(name: str) -> None:
    schema, allowed, _ = LANGUAGES[name]
    machine = automaton(schema)
    check = jsonschema.Draft202012Validator(schema).validate
    for text in allowed:
        data, state = text.encode(), machine.start
        for end in range(len(data) + 1):
            ending = b"".join(machine.ending(state))
            whole = data[:end] + ending
            try:
                check(json.loads(whole))
            except UnicodeDecodeError:
                assert data[:end].decode(errors="replace")[-1] == "\ufffd", "within a character"
            assert accepts_bytes(machine, whole)
            assert machine.is_whole(state) == (not ending)
            if end < len(data):
                state = machine.step(state, data[end])


def accepts_bytes(machine: StackAutomaton, data: bytes) -> bool:
    state = machine.start
    for byte in data:
        state = machine.step(state, byte)
    return bool(state) and machine.is_whole(state)


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_text_must_end_where_nothing_may_follow(name: str) -> None:
    schema, allowed, _ = LANGUAGES[name]
    machine = automaton(schema)
    for text in allowed:
        state = state_after(machine, text)
        goes_on = any(machine.step(state, byte) for byte in range(256))
        assert machine.must_end(state) == (not goes_on), text


def test_numbers_of_small_ranges_and_no_others() -> None:
    """Each of them, in a few ways of writing it."""
    bounds = [-11, -10, -9, -1, 0, 1, 9, 10, 11, 19, 20, 99, 100, 101]
    numbers = range(-120, 121)
    for least, most in product(bounds, bounds):
        if least > most:
            continue
        machine = automaton({"type": "integer", "minimum": least, "maximum": most})
        found = [number for number in numbers if accepts(machine, str(number))]
        assert found == [number for number in numbers if least <= number <= most]


def deep(levels: int, kind: str) -> Schema:
    """Return a required property of a required property …, which is of this type."""
    return obj("a", a=deep(levels - 1, kind)) if levels else {"type": kind}


NUM = {"type": "number"}
APART: list[tuple[Schema, Schema, bool]] = [
    (INT, {"type": "string"}, True),
    (INT, NUM, False),
    (NUM, INT, False),
    ({"type": ["integer", "string"]}, {"type": ["string", "null"]}, False),
    ({"type": ["integer", "string"]}, {"type": ["boolean", "null"]}, True),
    ({"const": 1}, {"const": 2}, True),
    ({"const": 1}, {"enum": [1, 2]}, False),
    ({"const": 1}, {"const": 1.0}, False),
    ({"enum": ["a", "b"]}, {"enum": ["c", "d"]}, True),
    ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, False),
    ({"const": "abc"}, {"type": "string", "maxLength": 2}, True),
    ({"type": "string", "maxLength": 2}, {"const": "abc"}, True),
    ({"const": "abc"}, {"type": "string", "maxLength": 3}, False),
    ({"const": 5}, {"type": "integer", "minimum": 6}, True),
    ({"const": 5}, {"type": "integer", "minimum": 5}, False),
    (NUM | {"maximum": 3}, NUM | {"minimum": 4}, True),
    (NUM | {"minimum": 4}, NUM | {"maximum": 3}, True),
    (NUM | {"maximum": 3}, NUM | {"minimum": 3}, False),
    (NUM | {"maximum": 3}, NUM | {"exclusiveMinimum": 3}, True),
    (NUM | {"exclusiveMaximum": 3}, NUM | {"minimum": 3}, True),
    (NUM | {"maximum": 3}, NUM, False),
    (INT | {"maximum": 3}, INT | {"minimum": 4}, True),
    (INT | {"maximum": 3}, NUM | {"minimum": 4}, True),
    ({"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3}, False),  # not told
    (array(maxItems=1), array(minItems=2), False),  # not told
    (obj("a", a=INT), obj("b", b=INT), True),
    (obj("a", a=INT), obj(b=INT), True),
    (obj(b=INT), obj("a", a=INT), True),
    (obj(a=INT), obj(b=INT), False),
    (obj("a", a=INT, more=True), obj("b", b=INT, more=True), False),
    (obj("a", a=INT, more=True), obj("a", a={"type": "string"}, more=True), True),
    (obj("a", a=INT, more=True), obj(a={"type": "string"}, more=True), False),
    (obj("a", "b", a=INT, b={"const": 1}), obj("a", "b", a=INT, b={"const": 2}), True),
    (obj("a", a=INT), obj("a", a=INT), False),
    (deep(4, "integer"), deep(4, "string"), True),
    (deep(5, "integer"), deep(5, "string"), False),  # is not looked for any deeper
]


@pytest.mark.parametrize(("left", "right", "apart"), APART)
def test_one_of_two_that_have_nothing_in_common(left: Schema, right: Schema, apart: bool) -> None:
    if apart:
        automaton({"oneOf": [left, right]})
    else:
        with pytest.raises(RequestError, match="could fit both schema 0 and schema 1"):
            automaton({"oneOf": [left, right]})


@pytest.mark.parametrize("depth", [31, 32, 33])
def test_how_deep_texts_go(depth: int) -> None:
    machine = automaton({"$ref": "#/$defs/a", "$defs": {"a": array({"$ref": "#/$defs/a"})}})
    assert accepts(machine, "[" * depth + "]" * depth) == (depth <= 32)
