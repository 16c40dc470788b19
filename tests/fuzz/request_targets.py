"""The requests of programs: their fields, and the schemas of answers."""

import json
from collections.abc import AsyncIterator
from functools import cache
from types import SimpleNamespace
from typing import Any

from py_runtime.app.completions import Completion
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.chat.template import ChatTemplate
from py_runtime.generation.pieces import Piece
from py_runtime.grammar import grammar_for
from py_runtime.model import Model
from py_runtime.model.chat_prompts import ChatPrompts
from tests.chat.chats import INST, SPECIAL_TOKENS
from tests.fuzz.documents import make_lie
from tests.fuzz.driver import Target
from tests.fuzz.in_line import all_of
from tests.fuzz.snippets import schema
from tests.grammar.schemas import SCHEMAS
from tests.grammar.vocabularies import TOY, end_of, texts_of, tokenizer_of

STEPS = 8  # tokens of an answer, each chosen among those that the schema allows
MESSAGES = [
    {"role": "developer", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
]
FIELDS: dict[str, Any] = {
    **{"temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.1},
    **{"frequency_penalty": 0.5, "presence_penalty": -1, "logit_bias": {"17": 5.5}, "seed": 7},
    **{"max_tokens": 200, "stop": ["x", "y"], "logprobs": True, "top_logprobs": 3, "n": 1},
    **{"ignore_eos": False, "context_overflow": "drop_oldest", "allow_special": True},
    **{"stream": True, "stream_options": {"include_usage": True}, "model": "Toy"},
    "response_format": {"type": "json_object"},
}


CALL = {"id": "a", "type": "function", "function": {"name": "now", "arguments": '{"a": [1]}'}}
CALLED = [
    {"role": "user", "content": "x"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "y"},
    {"role": "tool", "tool_call_id": "a", "content": "z"},
]
TOOL = {
    "name": "now",
    "description": "d",
    "parameters": {"type": "object", "properties": {"a": {}}},
}
TOOLS: dict[str, Any] = {
    **{"tools": [{"type": "function", "function": TOOL}], "parallel_tool_calls": False},
    **{"tool_choice": {"type": "function", "function": {"name": "now"}}, "max_tokens": 100},
    **{"chat_template_kwargs": {"a": 1}, "enable_thinking": True, "reasoning_effort": "low"},
    **{"reasoning_format": "none", "n": 2, "user": "u", "metadata": {"a": "b"}, "seed": 1},
}


class Unloaded(Model):
    """A model without its graph: whatever is asked of it is checked, and nothing comes."""

    def __init__(self) -> None:
        self.manifest: Any = SimpleNamespace(name="Toy", context=800)
        self.tokenizer = tokenizer_of(TOY)
        self.vocabulary = self.tokenizer.vocabulary_size
        self.end_tokens = frozenset([end_of(TOY)])
        self.chat_template = ChatTemplate(INST, SPECIAL_TOKENS)
        self.prompts = ChatPrompts("Toy", self.chat_template, self.tokenizer)
        self._token_texts = None

    async def _generate(self, prompt: list[int], options: Any, *_: Any) -> AsyncIterator[Piece]:
        self._check_room(prompt)
        grammar = self._grammar(options.response_format)
        if grammar is not None:
            grammar.require(options.max_tokens or 100)
        nothing: list[Piece] = []
        for piece in nothing:
            yield piece


@cache
def unloaded() -> Unloaded:
    return Unloaded()


def requests() -> list[bytes]:
    schema = {"type": "json_schema", "json_schema": {"schema": SCHEMAS["person"][0]}}
    few = {"temperature": 0, "max_completion_tokens": 150, "response_format": schema}
    plain = {name: value for name, value in FIELDS.items() if name != "response_format"}
    found = [
        {"messages": MESSAGES, **FIELDS},
        {"messages": MESSAGES[1:], **few},
        {"messages": CALLED, **TOOLS},
        {"prompt": "the quick brown fox", **plain},
        {"prompt_token_ids": [5, 6, 7], **few},
    ]
    return [json.dumps(request).encode() for request in found]


def read_request(data: bytes) -> None:
    """Read a request; the page sends values, not text, so what is no JSON cannot arrive."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        raise RequestError("it never arrives") from None
    if not isinstance(given, dict):
        raise RequestError("it never arrives")
    completion = Completion(unloaded(), given, is_chat="messages" in given)
    all_of(completion.pieces(CancelToken(), lambda done, total: None))


def schemas() -> list[bytes]:
    return [json.dumps(schema).encode() for schema, _ in SCHEMAS.values()]


def read_schema(data: bytes) -> None:
    """Read a schema and begin an answer: each step allows what can be made whole."""
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError):
        raise RequestError("it never arrives") from None
    texts = texts_of(TOY)
    texts.compiled.clear()
    grammar = grammar_for({"type": "json_schema", "json_schema": {"schema": asked}}, texts)
    assert grammar is not None
    for step in range(STEPS):
        allowed = grammar.allowed().nonzero()[0]
        assert len(allowed), "something may follow"
        grammar.advance(int(allowed[(len(data) + step) * 7919 % len(allowed)]))
        if grammar.complete:
            break
    assert grammar.whole or grammar.closing_tokens()


TARGETS = [
    Target("request", requests, make_lie, read_request, count=400, memory=64 << 20),
    Target("schema", schemas, schema, read_schema, count=80, memory=64 << 20),
]
