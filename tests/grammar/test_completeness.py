"""Values that fit a schema can be said, in the ways that programs write JSON."""

import json
from typing import Any

import pytest

from py_runtime.grammar import grammar_for
from tests.grammar.schemas import SCHEMAS
from tests.grammar.vocabularies import TOY, end_of, grammar, texts_of, tokenizer_of
from tests.grammar.walks import accepts
from tests.tokens.reference import REAL

NAMES = [TOY, REAL, "llama2"]
STYLES: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"indent": 2},
    {"indent": 4},
    {"indent": "\t"},
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_values(schema: str, name: str) -> None:
    for value in SCHEMAS[schema][1]:
        for style in STYLES:
            text = json.dumps(value, ensure_ascii=False, **style)
            assert accepts(name, grammar(name, SCHEMAS[schema][0]), text), text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "minLength": 0}, '""'),
        ({"type": "string", "maxLength": 0}, '""'),
        ({"type": "array", "minItems": 0}, "[]"),
        ({"type": "array", "maxItems": 0}, "[]"),
    ],
)
def test_none_at_all_is_a_length(schema: Any, text: str) -> None:
    assert accepts(TOY, grammar(TOY, schema), text)


@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": "string", "pattern": "^.{2}$"}])
def test_the_characters_around_pairs_can_be_escaped(schema: Any) -> None:
    assert accepts(TOY, grammar(TOY, schema), r'"\ud7ff\ue000"')
    assert accepts(TOY, grammar(TOY, schema), r'"\ud800\udfffx"')


@pytest.mark.parametrize("name", NAMES)
def test_escapes_stand_for_their_characters(name: str) -> None:
    schema = {"type": "string", "pattern": "^[é😀\\n/]{3,4}$"}
    for text in (r'"\u00e9\ud83d\ude00\n"', r'"é😀\u000A"', r'"\uD83D\uDE00\/\u002f/"'):
        assert accepts(name, grammar(name, schema), text)
    for text in (
        r'"\u00e8\n\n"',
        r'"\ud83d\u00e9é"',
        r'"\ude00éé"',
        '"é\n\n"',
        r'"é\ud83e\ude00é"',
    ):
        assert not accepts(name, grammar(name, schema), text), text


NO_JSON = r"""
{}x
[]
"a"
{'a': 1}
{"a": 01}
{"a": +1}
{"a": .5}
{"a": 1.}
{"a" : 1}
{"a": NaN}
{"a": 1,}
{"a": tru}
{"a": "\x41"}
{"a":  1}
{"a": 1e999}
{"a": "\ud800"}
{"a": "\ud800\n"}
{"a": [1 2]}
{"a"}
"""


@pytest.mark.parametrize("text", [*NO_JSON.split("\n")[1:-1], '{"a": "\t"}', "\n\n{}", "  {}"])
def test_what_is_no_json_is_not_allowed(text: str) -> None:
    started = grammar_for({"type": "json_object"}, texts_of(TOY))
    assert started is not None
    assert not accepts(TOY, started, text)


def test_names_are_not_said_twice_in_disguise() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "additionalProperties": {"type": "integer"},
    }
    assert accepts(TOY, grammar(TOY, schema), '{"nam": 1, "names": 2}')
    for text in ('{"name": 1}', r'{"n\u0061me": 1}', '{"x": 1, "name": "a"}', '{"x": "a"}'):
        assert not accepts(TOY, grammar(TOY, schema), text)


@pytest.mark.parametrize("name", NAMES)
def test_the_end(name: str) -> None:
    started = grammar(name, {"type": "integer", "maximum": 99})
    end = end_of(name)
    assert not started.allowed()[end]
    for token in tokenizer_of(name).encode("9", add_special_tokens=False):
        started.advance(token)
    assert started.allowed()[end]
    may_go_on = not started.complete
    assert may_go_on  # another digit may follow
    for token in tokenizer_of(name).encode("x9", add_special_tokens=False)[-1:]:
        started.advance(token)
    assert started.complete
    assert started.allowed().nonzero()[0].tolist() == [end]
    started.advance(end)
    assert started.complete
    with pytest.raises(ValueError, match="not allowed"):
        started.advance(tokenizer_of(name).encode("9", add_special_tokens=False)[-1])


def test_nesting_has_a_limit() -> None:
    started = grammar_for({"type": "json_object"}, texts_of(TOY))
    assert started is not None
    text = '{"a":' + "[" * 31
    for token in tokenizer_of(TOY).encode(text):
        started.advance(token)
    opening = tokenizer_of(TOY).encode("[")[0]
    assert not started.allowed()[opening]
    assert started.allowed()[tokenizer_of(TOY).encode("]")[0]]
