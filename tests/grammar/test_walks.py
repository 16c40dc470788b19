"""Walks through a grammar: any output parses and fits the schema, however few tokens it takes."""

import json
from datetime import datetime, time
from typing import Any
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from py_runtime.base.errors import RequestError
from py_runtime.grammar import grammar_for
from py_runtime.grammar.limits import MAX_DEPTH
from tests.grammar.schemas import SCHEMAS
from tests.grammar.vocabularies import TOY, grammar, texts_of
from tests.grammar.walks import CHOOSERS, Chooser, accepts, adversarial, uniform, walk
from tests.tokens.reference import REAL

FORMATS = FormatChecker(["date", "email", "ipv4", "uuid"])
FORMATS.checks("time", raises=ValueError)(lambda text: bool(time.fromisoformat(text).tzinfo))
FORMATS.checks("date-time", raises=ValueError)(lambda text: datetime.fromisoformat(text).tzinfo)
FORMATS.checks("uri", raises=ValueError)(lambda text: urlsplit(text).hostname)
FORMATS.checks("hostname")(lambda text: text.isascii() and all(text.split(".")))


def check(text: str, schema: Any) -> None:
    value = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in {text}"))
    Draft202012Validator(schema, format_checker=FORMATS).validate(value)


@pytest.mark.parametrize("chooser", CHOOSERS)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_toy_vocabulary(schema: str, chooser: Any) -> None:
    choose: Chooser = chooser(TOY)
    fewest = len(grammar(TOY, SCHEMAS[schema][0]).closing_tokens())
    for seed, budget in enumerate((fewest, fewest + 1, fewest + 3, fewest + 9, fewest + 40, 400)):
        text = walk(TOY, grammar(TOY, SCHEMAS[schema][0]), choose, max(budget, fewest), seed)
        check(text, SCHEMAS[schema][0])


@pytest.mark.parametrize("name", ["llama2", REAL])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_vocabularies_of_models(schema: str, name: str) -> None:
    for seed, make in enumerate((uniform, adversarial)):
        started = grammar(name, SCHEMAS[schema][0])
        fewest = len(started.closing_tokens())
        check(walk(name, started, make(name), fewest + 12, seed), SCHEMAS[schema][0])


@pytest.mark.parametrize("chooser", CHOOSERS)
@pytest.mark.parametrize("budget", [1, 2, 3, 10, 300])
@pytest.mark.parametrize("name", [REAL, "gpt2"])
def test_json_mode(chooser: Any, budget: int, name: str) -> None:
    started = grammar_for({"type": "json_object"}, texts_of(name))
    assert started is not None
    text = walk(name, started, chooser(name), max(budget, len(started.closing_tokens())), budget)
    assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize(("levels", "fits"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_levels_of_containers(levels: int, fits: bool) -> None:
    started = grammar_for({"type": "json_object"}, texts_of(TOY))
    assert started is not None
    lists = levels - 1
    assert accepts(TOY, started, '{"a":' + "[" * lists + "]" * lists + "}") is fits


@pytest.mark.parametrize("schema", SCHEMAS)
def test_too_few_tokens(schema: str) -> None:
    started = grammar(TOY, SCHEMAS[schema][0])
    fewest = len(started.closing_tokens())
    started.require(fewest)
    with pytest.raises(RequestError, match=f"takes {fewest} tokens") as raised:
        started.require(fewest - 1)
    assert raised.value.param == "max_tokens"
    with pytest.raises(RequestError, match=f"takes {fewest} tokens"):
        started.allowed(fewest - 1)
