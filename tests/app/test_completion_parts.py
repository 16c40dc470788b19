"""Requests and answers in OpenAI's shapes, over a model that answers what it is told to.

Every field is left out and given, and an answer is told in a line.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from py_runtime.app import completions
from py_runtime.app.answer_outcome import outcome
from py_runtime.app.completions import (
    MAX_ANSWERS,
    Completion,
    check_labels,
    usage_json,
)
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.messages import worded
from py_runtime.base.tool_call import ToolCall
from py_runtime.generation.pieces import Piece, Usage, Work
from py_runtime.sampling import TokenLogprob
from tests.runners import wait

Json = dict[str, Any]
USAGE = Usage(prompt_tokens=11, cached_tokens=5, completion_tokens=3)
PIECES = [
    Piece("Hel", (1, 2)),
    Piece("lo", (3,), (TokenLogprob(3, -0.5, ((3, -0.5), (4, -1.5))),)),
    Piece("", (), finish_reason="stop", usage=USAGE),
]
CALL = ToolCall(id="id1", name="look", arguments='{"a": 1}')
THINKING = [
    Piece("", (1,), reasoning="Hm."),
    Piece("Well", (2,), reasoning=" So.", tool_calls=(CALL, replace(CALL, id="id2"))),
    Piece(finish_reason="tool_calls", usage=replace(USAGE, reasoning_tokens=2)),
]


class FakeModel:
    manifest = SimpleNamespace(name="toy")
    tokenizer = SimpleNamespace(
        decode=lambda ids, skip_special_tokens: f"<{ids[0]}>" if not skip_special_tokens else ""
    )

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces
        self.asked: list[tuple[str, Any, Json]] = []

    async def chat(self, messages: Any, **fields: Any) -> AsyncIterator[Piece]:
        self.asked.append(("chat", messages, self._fields(fields)))
        for piece in self._pieces:
            yield piece

    async def complete(self, prompt: Any, **fields: Any) -> AsyncIterator[Piece]:
        self.asked.append(("complete", prompt, self._fields(fields)))
        for piece in self._pieces:
            yield piece

    def _fields(self, fields: Json) -> Json:
        assert isinstance(fields.pop("cancel"), CancelToken)
        fields.pop("on_prefill")(7, 11)
        return fields


def completion(given: Json, is_chat: bool = True, pieces: list[Piece] = PIECES) -> Any:
    model = FakeModel(pieces)
    return model, Completion(cast(Any, model), given, is_chat)


def answered(given: Json, is_chat: bool = True, pieces: list[Piece] = PIECES) -> Json:
    _, asked = completion(given, is_chat, pieces)
    return cast(Json, wait(asked.answer(CancelToken())))


def streamed(
    given: Json, is_chat: bool = True, pieces: list[Piece] = PIECES, **options: Any
) -> list[Json]:
    _, asked = completion({"stream": True, **given}, is_chat, pieces)
    chunks: list[Json] = []
    wait(asked.chunks(CancelToken(), chunks.append, **options))
    return chunks


def test_a_chat_at_once() -> None:
    found = answered({"messages": []})
    assert found["object"] == "chat.completion"
    assert found["id"].startswith("chatcmpl-")
    assert found["model"] == "toy"
    assert found["created"] > 1_700_000_000
    (choice,) = found["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hello", "refusal": None}
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert choice["token_ids"] == [1, 2, 3]
    (entry,) = choice["logprobs"]["content"]
    assert (entry["token"], entry["token_id"], entry["logprob"]) == ("<3>", 3, -0.5)
    assert [top["token_id"] for top in entry["top_logprobs"]] == [3, 4]
    usage = found["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (
        11,
        3,
        14,
    )
    assert usage["cached_tokens"] == 5
    assert "completion_tokens_details" not in usage


def test_the_whole_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(time=lambda: 1.9e9, perf_counter=iter([50.0, 52.5]).__next__)
    monkeypatch.setattr(completions, "time", clock)
    found = answered({"messages": []})
    assert found["usage"]["summary"] == "3 tokens · 2.5 s"
    assert found["usage"]["messages"] == [
        {"code": "answer_tokens", "facts": {"tokens": 3}},
        {"code": "answer_seconds", "facts": {"seconds": 2.5}},
    ]
    assert found["created"] == 1_900_000_000


def test_a_text_at_once() -> None:
    found = answered({"prompt": "x"}, is_chat=False)
    assert found["object"] == "text_completion"
    assert found["id"].startswith("cmpl-")
    assert found["choices"][0]["text"] == "Hello"
    assert "message" not in found["choices"][0]


def test_thoughts_and_calls_at_once() -> None:
    message = answered({"messages": []}, pieces=THINKING)["choices"][0]["message"]
    assert message["reasoning_content"] == "Hm. So."
    assert message["content"] == "Well"
    function = {"name": "look", "arguments": '{"a": 1}'}
    assert message["tool_calls"] == [
        {"id": name, "type": "function", "function": function} for name in ("id1", "id2")
    ]
    silent = [replace(THINKING[1], text=""), THINKING[2]]
    assert answered({"messages": []}, pieces=silent)["choices"][0]["message"]["content"] is None
    usage = answered({"messages": []}, pieces=THINKING)["usage"]
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 2}


def test_a_chat_in_chunks() -> None:
    chunks = streamed({"messages": []})
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant", "content": "Hel"},
        {"content": "lo"},
        {"content": ""},
    ]
    assert [choice["token_ids"] for choice in choices] == [[1, 2], [3], []]
    assert [choice["finish_reason"] for choice in choices] == [None, None, "stop"]
    assert [choice["logprobs"] is None for choice in choices] == [True, False, True]
    assert all("usage" not in chunk for chunk in chunks)


def test_thoughts_and_calls_in_chunks() -> None:
    choices = [chunk["choices"][0] for chunk in streamed({"messages": []}, pieces=THINKING)]
    deltas = [choice["delta"] for choice in choices]
    assert deltas[0] == {"role": "assistant", "reasoning_content": "Hm."}
    assert deltas[1:3] == [{"reasoning_content": " So."}, {"content": "Well"}]
    calls = [delta["tool_calls"][0] for delta in deltas[3:7]]
    assert [call["index"] for call in calls] == [0, 0, 1, 1]
    assert [call.get("id") for call in calls] == ["id1", None, "id2", None]
    assert [call["function"]["arguments"] for call in calls] == ["", '{"a": 1}'] * 2
    assert [choice["token_ids"] for choice in choices] == [[1], [2], *[[]] * 6]
    assert [choice["finish_reason"] for choice in choices] == [*[None] * 7, "tool_calls"]


def test_a_text_in_chunks() -> None:
    chunks = streamed({"prompt": "x"}, is_chat=False)
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["Hel", "lo", ""]


def test_usage_and_progress_are_told_where_they_are_asked_for() -> None:
    asked = {"messages": [], "stream_options": {"include_usage": True, "include_progress": True}}
    first, second, *_, last = streamed(asked, is_compiling=True)
    assert first["progress"] == {"prefilled": 0, "total": 0, "compiling": True}
    assert second["progress"] == {"prefilled": 7, "total": 11}
    assert (first["choices"], last["choices"]) == ([], [])
    assert last["usage"]["completion_tokens"] == 3
    without = {"include_usage": False, "include_progress": False}
    for more in ({}, {"stream_options": without}):
        chunks = streamed({"messages": [], **more}, is_compiling=True)
        assert not [chunk for chunk in chunks if "usage" in chunk or "progress" in chunk]
    assert "progress" not in streamed(asked)[-1]


def test_several_answers_have_seeds_of_their_own() -> None:
    model, asked = completion({"messages": ["m"], "n": 3, "seed": 40, "temperature": 0.5})
    found = wait(asked.answer(CancelToken()))
    assert [choice["index"] for choice in found["choices"]] == [0, 1, 2]
    assert [fields["seed"] for _, _, fields in model.asked] == [40, 41, 42]
    assert {fields["temperature"] for _, _, fields in model.asked} == {0.5}
    assert found["usage"]["completion_tokens"] == 9
    assert found["usage"]["prompt_tokens"] == 11
    model, asked = completion({"messages": ["m"], "n": 2})
    wait(asked.answer(CancelToken()))
    assert model.asked == [("chat", ["m"], {})] * 2
    counted = [chunk["choices"][0]["index"] for chunk in streamed({"messages": [], "n": 2})]
    assert counted == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("given", "prompt"),
    [({"prompt": "x"}, "x"), ({"prompt_token_ids": [1, 2]}, [1, 2]), ({"prompt": ""}, "")],
)
def test_a_prompt_is_a_text_or_tokens(given: Json, prompt: Any) -> None:
    model, asked = completion(given, is_chat=False)
    wait(asked.answer(CancelToken()))
    assert model.asked == [("complete", prompt, {})]


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({}, "prompt"),
        ({"prompt": "x", "prompt_token_ids": [1]}, "prompt"),
        ({"prompt_token_ids": "x"}, "prompt_token_ids"),
    ],
)
def test_a_prompt_that_is_none(given: Json, param: str) -> None:
    _, asked = completion(given, is_chat=False)
    with pytest.raises(RequestError) as caught:
        wait(asked.answer(CancelToken()))
    assert caught.value.param == param


@pytest.mark.parametrize(
    "given",
    [
        {"model": "toy"},
        {"model": None},
        {"n": 1},
        {"n": MAX_ANSWERS},
        {"n": None},
        {"user": "me", "metadata": {"a": "b"}},
        {"metadata": {}},
        {"stream": False},
        {"stream": None},
        {"stream": True, "stream_options": {}},
    ],
)
def test_what_may_be_said(given: Json) -> None:
    _, asked = completion(given)
    assert asked.stream is (given.get("stream") or False)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"model": "other"}, "model"),
        ({"n": 0}, "n"),
        ({"n": MAX_ANSWERS + 1}, "n"),
        ({"n": True}, "n"),
        ({"n": 1.0}, "n"),
        ({"user": 5}, "user"),
        ({"metadata": ["a"]}, "metadata"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"metadata": {"a": "b", "c": 1}}, "metadata"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {}}, "stream_options"),
        ({"stream": True, "stream_options": []}, "stream_options"),
        ({"stream": True, "stream_options": {"other": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "include_usage"),
        ({"cancel": 1}, "cancel"),
        ({"on_prefill": 1}, "on_prefill"),
    ],
)
def test_what_is_refused(given: Json, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        completion(given)
    assert caught.value.param == param


def test_labels_may_be_left_out() -> None:
    check_labels(None, None)


def test_what_only_this_engine_tells() -> None:
    extra = usage_json(USAGE)["extra"]
    assert extra.pop("sampling")["temperature"] == 1
    assert extra == {
        "time_to_first_token_s": None,
        "prefill_tokens_per_s": None,
        "decode_tokens_per_s": None,
    }
    work = Work(1.0, 2.0, 3.0, 4.0, None, 5.0)
    extra = usage_json(replace(USAGE, work=work, dropped_messages=2))["extra"]
    assert (extra["dispatches_per_token"], extra["submitting_ms_per_token"]) == (1.0, 5.0)
    assert extra["python_ms_per_token"] is None
    assert extra["dropped_messages"] == 2


FAST = replace(USAGE, time_to_first_token_s=0.5, decode_tokens_per_s=4.0, completion_tokens=9)


@pytest.mark.parametrize(
    ("usage", "reason", "seconds", "told"),
    [
        (USAGE, "stop", 1.25, "3 tokens · 1.2 s"),
        (replace(USAGE, completion_tokens=1), "stop", 1, "1 token · 1.0 s"),
        (USAGE, "abort", 1, "Stopped · 3 tokens · 1.0 s"),
        (USAGE, "length", 1, "Maximum length reached · 3 tokens · 1.0 s"),
        (
            replace(USAGE, fills_context=True),
            "length",
            1,
            "Context full · 3 tokens · 1.0 s",
        ),
        (FAST, "stop", 2.5, "9 tokens · 2.5 s (0.5 reading, 2.0 writing) · 4.0 tok/s"),
        (
            *(replace(FAST, images_s=0.3), "stop", 2.5),
            "9 tokens · 2.5 s (0.3 looking at images, 0.2 reading, 2.0 writing) · 4.0 tok/s",
        ),
        (
            *(FAST, "stop", 2.8),
            "9 tokens · 2.8 s (0.3 preparing, 0.5 reading, 2.0 writing) · 4.0 tok/s",
        ),
        (FAST, "stop", 1.0, "9 tokens · 2.5 s (0.5 reading, 2.0 writing) · 4.0 tok/s"),
        (
            *(replace(FAST, decode_tokens_per_s=None), "stop", 0.5),
            "9 tokens · 0.5 s (0.5 reading)",
        ),
        (
            *(replace(USAGE, time_to_first_token_s=0.0), "stop", 0.0),
            "3 tokens · 0.0 s",
        ),
        (
            replace(USAGE, dropped_messages=1),
            "stop",
            1,
            "3 tokens · 1.0 s · 1 oldest message left out",
        ),
    ],
)
def test_an_answer_in_a_line(usage: Usage, reason: str, seconds: float, told: str) -> None:
    assert worded(outcome(Piece(finish_reason=reason, usage=usage), seconds)) == told
