"""Code that runs where the engine runs, natively or in the page, on behalf of these tests."""

import json
from typing import Any

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.grammar import TokenTexts, grammar_for
from py_runtime.tokens import Tokenizer


async def generate(
    device: Any, tokenizer: str, schemas: dict[str, Any], budget: int
) -> dict[str, str]:
    """Return a random text for each schema, or why there is none."""
    found = Tokenizer.from_json(tokenizer)
    end = found.vocabulary_size
    texts = TokenTexts(found, end + 1, [end])
    made = {}
    for name, schema in schemas.items():
        asked = {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}
        try:
            grammar = grammar_for(asked, texts)
            assert grammar is not None
            grammar.require(budget)
        except RequestError as error:
            made[name] = f"refused: {error}"
            continue
        rng = np.random.default_rng(7)
        tokens: list[int] = []
        while len(tokens) < budget and not grammar.complete:
            allowed = grammar.allowed(budget - len(tokens))
            tokens.append(int(rng.choice(np.flatnonzero(allowed))))
            grammar.advance(tokens[-1])
        made[name] = found.decode(tokens)
        json.loads(made[name])
    return made


async def fault_of_deep_schema(device: Any, tokenizer: str, depth: int) -> str:
    """Return the fault of schemas inside one another, made here, as no message could carry them."""
    found = Tokenizer.from_json(tokenizer)
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(depth):
        schema = {"allOf": [schema]}
    asked = {"type": "json_schema", "json_schema": {"name": "deep", "schema": schema}}
    try:
        grammar_for(asked, TokenTexts(found, found.vocabulary_size, []))
    except RequestError as error:
        return str(error)
    return "none"
