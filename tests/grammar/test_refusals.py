"""Refusals of what cannot be done, by name and place; what is meant ill stays small."""

import json
from itertools import pairwise
from typing import Any

import pytest

from py_runtime.app.format_calls import fault_of_format
from py_runtime.base.errors import RequestError
from py_runtime.grammar import TokenTexts, grammar_for
from tests.grammar.vocabularies import TOY, grammar, texts_of, tokenizer_of
from tests.grammar.walks import accepts, adversarial, walk


def inside(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"]}


def one_number(*ranges: dict[str, int]) -> dict[str, Any]:
    return {"oneOf": [{"type": "number", **given} for given in ranges]}


KEYWORDS = {
    "multipleOf": 5,
    "uniqueItems": True,
    "patternProperties": {},
    "not": {},
    "if": {},
    "dependentRequired": {},
    "contains": {},
    "minProperties": 1,
    "propertyNames": {},
    "unevaluatedProperties": False,
    "$dynamicRef": "#x",
    "nullable": True,
    "minLenght": 3,
}


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_keywords_by_name_and_place(keyword: str) -> None:
    with pytest.raises(RequestError) as raised:
        grammar(TOY, inside({keyword: KEYWORDS[keyword]}))
    assert f"#/properties/a: the keyword '{keyword}' is not supported" in str(raised.value)
    assert raised.value.param == "response_format"
    assert raised.value.code == "invalid_request"


FAULTS: list[tuple[Any, str]] = [
    ({"type": "text"}, "#/properties/a: type is 'text', not one of null, boolean"),
    ({"type": "string", "pattern": "(?=a)b"}, r"the group '\(\?=a' is not supported"),
    ({"type": "string", "pattern": r"\bword\b"}, r"\\b is not supported"),
    ({"type": "string", "pattern": r"(a)\1"}, r"\\1 is not supported"),
    ({"type": "string", "pattern": "(a"}, "a group is not closed"),
    ({"type": "string", "pattern": "a{99999999999}"}, "it is too complex"),
    ({"type": "string", "pattern": "(?:){2,99999999999}"}, "it is too complex"),
    ({"type": "string", "pattern": f"a{{{'9' * 5000}}}"}, "it is too complex"),
    ({"type": "string", "format": "ipv6"}, "the format 'ipv6' is not supported"),
    ({"type": "number", "minimum": "1"}, "minimum is '1', not a number"),
    ({"type": "number", "minimum": 1e-30}, "has more than 15 digits"),
    ({"type": "string", "minLength": -1}, "minLength is -1, not a whole number"),
    ({"$ref": "#/$defs/none"}, "the \\$ref '#/\\$defs/none' leads nowhere"),
    ({"$ref": f"#/required/{'9' * 5000}"}, "leads nowhere"),
    ({"$ref": "https://example.org/schema"}, "only those that begin with #/"),
    ({"items": [{}, {}]}, "for items by their place use prefixItems"),
    ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, "could fit both schema 0 and schema 1"),
    ({"oneOf": [inside({"type": "string"}), inside({"maxLength": 3})]}, "could fit both"),
    (one_number({"exclusiveMinimum": 1}, {"maximum": 2}), "could fit both"),
    (one_number({"minimum": 1}, {"maximum": 1}), "could fit both"),
    ({"anyOf": []}, "anyOf is not a list of schemas"),
    ({"enum": []}, "enum is \\[\\], not a list of values"),
    ({"const": [1], "minItems": 2}, "minItems beside an enum or const"),
    ({"type": "integer", "minimum": 3, "maximum": 2}, "no text of at most"),
    ({"enum": [1, 2], "type": "string"}, "no text of at most"),
    ({"allOf": [{"type": "string"}, {"type": "null"}]}, "no text of at most"),
    ({"type": "string", "pattern": "^a$", "minLength": 2}, "no text of at most"),
    ({"type": "string", "pattern": "a", "const": "\ud800"}, "half of a surrogate pair"),
    (False, "no text of at most"),
    (5, "properties is .*, not an object of schemas"),
]


@pytest.mark.parametrize(("schema", "fault"), FAULTS)
def test_faults(schema: Any, fault: str) -> None:
    with pytest.raises(RequestError, match=fault):
        grammar(TOY, inside(schema))


@pytest.mark.parametrize(
    "asked",
    [
        "json",
        {},
        {"type": "xml"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"name": "x"}},
        {"type": "json_schema", "json_schema": {"schema": "x"}},
        {"type": "json_schema", "json_schema": {"schema": {"const": float("nan")}}},
        {"type": "json_schema", "json_schema": {"schema": {"const": object()}}},
    ],
)
def test_response_format(asked: Any) -> None:
    with pytest.raises(RequestError) as raised:
        grammar_for(asked, texts_of(TOY))
    assert raised.value.param == "response_format"


def test_any_text_needs_no_grammar() -> None:
    assert grammar_for(None, texts_of(TOY)) is None
    assert grammar_for({"type": "text"}, texts_of(TOY)) is None


def nest(depth: int, combined: bool) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(depth):
        schema = {"allOf": [schema]} if combined else {"minItems": 1, "items": schema}
    return schema


def chain(length: int) -> Any:
    """Each schema asks for the next one twice."""
    names = [f"s{index}" for index in range(length)]
    definitions: dict[str, Any] = {
        name: {"allOf": [{"$ref": f"#/$defs/{after}"}] * 2} for name, after in pairwise(names)
    }
    return {"$defs": definitions | {names[-1]: {"type": "null"}}, "$ref": "#/$defs/s0"}


REFUSED = {
    "recursion without an end": {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
    "references without an end": chain(1_000),
    "reference to itself": {"$ref": "#"},
    "choice of itself": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    "exponential pattern": inside({"type": "string", "pattern": "(a|b)*a(a|b){20}"}),
    "repeated repetition": inside({"type": "string", "pattern": "((a{99}){99}){99}"}),
    "groups inside groups": inside({"type": "string", "pattern": "(" * 5000 + ")" * 5000}),
    "huge enum": {"enum": [f"value number {index}" for index in range(100_000)]},
    "long text": {"type": "string", "minLength": 10**9},
    "many items": {"type": "array", "minItems": 10**9},
    "items of items": {
        "type": "array",
        "minItems": 9999,
        "items": {"type": "array", "minItems": 9999},
    },
    "pattern with a long text": {"type": "string", "pattern": "^(ab)*$", "maxLength": 10**9},
    "many digits": {"type": "integer", "minimum": 10**60},
    "many alternatives": {
        "allOf": [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(40)]
    },
    "many places": {"type": "object", "properties": {f"p{n}": {"const": n} for n in range(5000)}},
    "schema nested deeply": nest(90, combined=False),
    "items nested deeply": nest(2000, combined=False),
    "allOf nested deeply": nest(2000, combined=True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_schemas_of_ill_will_are_refused(name: str) -> None:
    with pytest.raises(RequestError):
        grammar(TOY, REFUSED[name])


BOUNDED = {
    "maxLength of a billion": {"type": "string", "maxLength": 10**9},
    "maxItems of a billion": {"type": "array", "items": {"type": "null"}, "maxItems": 10**9},
    "schemas that double": chain(30),
    "ambiguous nesting": {
        "anyOf": [
            {"type": "array", "items": {"$ref": "#"}, "maxItems": size} for size in range(1, 9)
        ]
    },
    "many optional properties": {
        "type": "object",
        "properties": {f"property {n}": {"type": "null"} for n in range(1500)},
    },
    "many lookalike texts": {
        "anyOf": [{"type": "string", "pattern": f"^[ab]*a[ab]{{{n}}}$"} for n in range(6)]
    },
    "large enum": {"enum": [f"{index:04x}" for index in range(8000)]},
}


@pytest.mark.parametrize("name", BOUNDED)
def test_large_languages_stay_small(name: str) -> None:
    started = grammar(TOY, BOUNDED[name])
    text = walk(TOY, started, adversarial(TOY), max(60, len(started.closing_tokens())))
    json.loads(text)
    assert len(started._automaton._states) < 30_000


def test_tables_that_start_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("py_runtime.grammar.stack_automaton._MAX_STATES", 40)
    schema = {"type": "array", "items": {"type": "string", "maxLength": 90}, "maxItems": 10}
    text = json.dumps(["All human beings are born free", "and equal in dignity", "and rights"])
    started, other = grammar(TOY, schema), grammar(TOY, schema)
    other.advance(tokenizer_of(TOY).encode("[")[0])
    assert accepts(TOY, started, text)
    assert started._automaton.generation > 0
    assert other.allowed()[tokenizer_of(TOY).encode('"')[0]]


def test_of_many_masks_the_last_ones_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("py_runtime.grammar.masks._MAX_REMEMBERED", 2)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert accepts(TOY, grammar(TOY, schema), '{"a": 12}')


@pytest.mark.parametrize("style", ["unfused_unknown", "words_with_affixes"])
def test_tokenizers_that_put_spaces_between_tokens(style: str) -> None:
    tokenizer = tokenizer_of(style)
    with pytest.raises(RequestError, match="cannot be constrained"):
        TokenTexts(tokenizer, tokenizer.vocabulary_size, [])


def test_a_format_is_checked_without_a_model() -> None:
    asked = {"type": "json_schema", "json_schema": {"schema": inside({"multipleOf": 5})}}
    assert fault_of_format(asked) == {
        "place": "#/properties/a",
        "reason": "schema_keyword",
        "facts": {"keyword": "'multipleOf'"},
        "message": "the keyword 'multipleOf' is not supported",
    }
    unknown = fault_of_format({"type": "xml"})
    assert unknown is not None
    assert unknown["reason"] is None
    assert fault_of_format({"type": "json_object"}) is None
    assert fault_of_format({"type": "json_schema", "json_schema": {"schema": {}}}) is None
