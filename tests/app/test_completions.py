"""Completions in OpenAI's shapes, streamed and whole, stopped at every stage."""

import json
from typing import Any

import pytest

from tests.app.conftest import ApiPage
from tests.toy_model import CONTEXT, NAME

pytestmark = pytest.mark.browser

GREEDY = {"temperature": 0, "max_tokens": 6, "ignore_eos": True}
CHAT = {**GREEDY, "messages": [{"role": "user", "content": "the quick brown fox"}]}
LONG = {**GREEDY, "prompt_token_ids": [5 + place % 200 for place in range(400)]}
COLLECT = """
const chunks = [];
const stream = await inpage.chat.completions.create({ ...given, stream: true });
for await (const chunk of stream) chunks.push(chunk);
return chunks
"""


def test_a_whole_completion(api: ApiPage) -> None:
    answer = api.run("return inpage.chat.completions.create(given)", {**CHAT, "model": NAME})
    assert answer["object"] == "chat.completion"
    assert answer["id"].startswith("chatcmpl-")
    assert answer["model"] == NAME
    (choice,) = answer["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "length")
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"]
    assert len(choice["token_ids"]) == 6
    assert choice["logprobs"] is None
    usage = answer["usage"]
    assert usage["completion_tokens"] == 6
    assert usage["total_tokens"] == usage["prompt_tokens"] + 6
    assert usage["cached_tokens"] == 0
    assert usage["extra"].keys() == {
        "time_to_first_token_s",
        "prefill_tokens_per_s",
        "decode_tokens_per_s",
        "dispatches_per_token",
        "submits_per_token",
        "bytes_written_per_token",
        "bytes_read_per_token",
        "python_ms_per_token",
        "submitting_ms_per_token",
        "sampling",
    }
    assert usage["extra"].pop("sampling")["temperature"] == 0
    clocks = {"time_to_first_token_s", "python_ms_per_token", "submitting_ms_per_token"}
    assert all(usage["extra"][name] >= 0 for name in clocks), "a browser's clock may stand still"
    assert all(value > 0 for name, value in usage["extra"].items() if name not in clocks)


def test_a_stream_says_the_same(api: ApiPage) -> None:
    whole = api.run("return inpage.chat.completions.create(given)", CHAT)
    options = {"include_usage": True, "include_progress": True}
    *chunks, last = api.run(COLLECT, {**CHAT, "stream_options": options})
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in [*chunks, last]}) == 1
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 6
    assert last["usage"]["cached_tokens"] == whole["usage"]["prompt_tokens"] - 1
    pieces = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    assert [piece["delta"].get("role") for piece in pieces] == ["assistant"] + [None] * (
        len(pieces) - 1
    )
    text = "".join(piece["delta"]["content"] for piece in pieces)
    assert text == whole["choices"][0]["message"]["content"]
    tokens = [token for piece in pieces for token in piece["token_ids"]]
    assert tokens == whole["choices"][0]["token_ids"]
    assert [piece["finish_reason"] for piece in pieces] == [None] * (len(pieces) - 1) + ["length"]
    assert all("usage" not in chunk for chunk in chunks)


def test_progress_is_told_while_the_prompt_is_read(slow: ApiPage) -> None:
    chunks = slow.run(
        COLLECT.replace("chat.completions", "completions"),
        {**LONG, "stream_options": {"include_progress": True}},
    )
    told = [chunk["progress"] for chunk in chunks if "progress" in chunk]
    assert len(told) > 1
    assert [entry["total"] for entry in told] == [400] * len(told)
    counts = [entry["prefilled"] for entry in told]
    assert counts == sorted(set(counts))
    assert counts[-1] == 400
    assert all(chunk["choices"] == [] for chunk in chunks if "progress" in chunk)
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}


def test_text_and_tokens_are_the_same_prompt(api: ApiPage) -> None:
    text = "the quick brown fox"
    ids = api.python(f"engine.model.tokenizer.encode({text!r})")
    answers = [
        api.run("return inpage.completions.create(given)", {**GREEDY, **prompt})
        for prompt in ({"prompt": text}, {"prompt_token_ids": ids})
    ]
    assert answers[0]["object"] == "text_completion"
    assert answers[0]["choices"][0]["text"] == answers[1]["choices"][0]["text"]
    assert answers[1]["usage"]["cached_tokens"] == len(ids) - 1


def test_logprobs_have_openais_shape(api: ApiPage) -> None:
    request = {**CHAT, "logprobs": True, "top_logprobs": 3}
    (choice,) = api.run("return inpage.chat.completions.create(given)", request)["choices"]
    entries = choice["logprobs"]["content"]
    assert [entry["token_id"] for entry in entries] == choice["token_ids"]
    for entry in entries:
        tops = [top["logprob"] for top in entry["top_logprobs"]]
        assert len(tops) == 3
        assert tops == sorted(tops, reverse=True)
        assert entry["logprob"] == tops[0] < 0  # greedy takes the likeliest
        assert isinstance(entry["token"], str)


def test_json_mode(api: ApiPage) -> None:
    request = {**CHAT, "max_tokens": 20, "response_format": {"type": "json_object"}}
    (choice,) = api.run("return inpage.chat.completions.create(given)", request)["choices"]
    assert isinstance(json.loads(choice["message"]["content"]), dict)


def test_tokens_are_counted(api: ApiPage) -> None:
    counted = api.run("return inpage.countTokens(given)", CHAT["messages"])
    usage = api.run("return inpage.chat.completions.create(given)", CHAT)["usage"]
    assert counted == {"prompt_tokens": usage["prompt_tokens"], "context": CONTEXT}


# Stopping ---------------------------------------------------------------------------------------

STOPPED_STREAM = """
const stop = new AbortController();
if (given.at === "start") stop.abort();
const chunks = [];
const request = { ...given.request, stream: true, signal: stop.signal,
                  stream_options: { include_progress: true, include_usage: true } };
for await (const chunk of inpage.completions.create(request)) {
  chunks.push(chunk);
  if (given.at === (chunk.progress ? "prefill" : "decode")) stop.abort();
}
return chunks
"""


# However late the page tells the worker to stop: the worker has waited for it.
WAIT_FOR_STOP = """
import asyncio
session = model.session

async def stop():
    while not any(cancel.cancelled for cancel in engine.loaded.running):
        await asyncio.sleep(0.01)  # less than 4 ms is no timer in a worker: nothing else has a turn

async def run_chunk(inputs):
    if session.tokens:
        await stop()
    return await type(session)._run_chunk(session, inputs)

async def generate(*arguments):
    async for piece in type(model)._generate(model, *arguments):
        yield piece
        await stop()
"""
WAIT_IN = {
    "prefill": f"{WAIT_FOR_STOP}\nsession._run_chunk = run_chunk",
    "decode": f"{WAIT_FOR_STOP}\nmodel._generate = generate",
}
WAIT_NO_MORE = """
session.__dict__.pop("_run_chunk", None)
model.__dict__.pop("_generate", None)
"""


@pytest.mark.parametrize("at", ["start", "prefill", "decode"])
def test_a_stopped_stream_ends_with_what_was_written(slow: ApiPage, at: str) -> None:
    api = slow
    request = {**LONG, "max_tokens": 100}
    api.python(WAIT_IN.get(at, WAIT_FOR_STOP))
    chunks = api.run(STOPPED_STREAM, {"at": at, "request": request})
    api.python(WAIT_NO_MORE)
    pieces = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    tokens = [token for piece in pieces for token in piece["token_ids"]]
    usage = chunks[-1]["usage"]
    assert pieces[-1]["finish_reason"] == "abort"
    assert usage["completion_tokens"] == len(tokens) < 100
    if at != "decode":
        assert tokens == []
    computed = len(api.python("engine.model.session.tokens"))
    assert computed < (1, 400, 500)[("start", "prefill", "decode").index(at)]
    again = api.run("return inpage.completions.create(given)", LONG)
    assert again["usage"]["cached_tokens"] == min(computed, 399)
    assert again["choices"][0]["token_ids"][: len(tokens)] == tokens[:6]


WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 10}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "words", "schema": WORDS}}


@pytest.mark.parametrize("more", [{}, {"response_format": SCHEMA}], ids=["plain", "schema"])
@pytest.mark.parametrize("at", ["start", "later"])
def test_a_stopped_call_resolves_with_what_was_written(
    api: ApiPage, at: str, more: dict[str, Any]
) -> None:
    body = """
        const stop = new AbortController();
        if (given.at === "start") stop.abort();
        const answer = inpage.completions.create({ ...given.request, signal: stop.signal });
        await inpage.models();
        stop.abort();
        return answer
    """
    request = {**LONG, "max_tokens": 110, **more}
    api.python(WAIT_IN["decode"])
    answer = api.run(body, {"at": at, "request": request})
    api.python(WAIT_NO_MORE)
    assert answer["choices"][0]["finish_reason"] == "abort"
    assert answer["usage"]["completion_tokens"] < 110


def test_leaving_the_loop_stops_the_generation(api: ApiPage) -> None:
    api.run(
        "for await (const chunk of inpage.completions.create({ ...given, stream: true })) break",
        {**LONG, "max_tokens": 110},
    )
    api.run("return inpage.completions.create(given)", {**GREEDY, "prompt": "fox"})  # its turn
    computed = api.python("engine.model.session.computed_tokens")
    api.python("import asyncio\nfor _ in range(100): await asyncio.sleep(0)")  # whoever would go on
    assert api.python("engine.model.session.computed_tokens") == computed
    assert api.python("len(engine.loaded.running)") == 0


def test_unloading_stops_the_generation(api: ApiPage) -> None:
    api.python(WAIT_IN["decode"])
    reason = api.run(
        """const answer = inpage.completions.create(given);
        await inpage.models();
        await inpage.unload();
        return (await answer).choices[0].finish_reason""",
        {**LONG, "max_tokens": 110},
    )
    assert reason == "abort"


def test_requests_are_served_one_after_the_other(api: ApiPage) -> None:
    order, answers = api.run(
        """const order = [];
        const read = async (name, request) => {
          const tokens = [];
          for await (const chunk of inpage.completions.create({ ...request, stream: true })) {
            tokens.push(...chunk.choices[0].token_ids);
            order.push(name);
          }
          return tokens;
        };
        const answers = await Promise.all([read("first", given[0]), read("second", given[1])]);
        return [order, answers]""",
        [LONG, {**GREEDY, "prompt": "fox"}],
    )
    assert order == ["first"] * order.count("first") + ["second"] * order.count("second")
    for request, tokens in zip([LONG, {**GREEDY, "prompt": "fox"}], answers, strict=True):
        alone = api.run("return inpage.completions.create(given)", request)
        assert alone["choices"][0]["token_ids"] == tokens


# Errors -----------------------------------------------------------------------------------------

WRONG: list[tuple[str, dict[str, Any] | None, str]] = [
    ("chat.completions", None, "messages"),
    ("chat.completions", {}, "messages"),
    ("chat.completions", {**CHAT, "temperature": 9}, "temperature"),
    ("chat.completions", {**CHAT, "tools": []}, "tools"),
    ("chat.completions", {**CHAT, "prompt": "hi"}, "prompt"),
    ("chat.completions", {**CHAT, "cancel": 1}, "cancel"),
    ("chat.completions", {**CHAT, "on_prefill": 1}, "on_prefill"),
    ("chat.completions", {**CHAT, "self": 1}, "self"),
    ("chat.completions", {**CHAT, "model": "gpt-4"}, "model"),
    ("chat.completions", {**CHAT, "stream": "yes"}, "stream"),
    ("chat.completions", {**CHAT, "stream_options": {}}, "stream_options"),
    ("completions", {}, "prompt"),
    ("completions", {"prompt": "a", "prompt_token_ids": [1]}, "prompt"),
    ("completions", {"prompt_token_ids": "the"}, "prompt_token_ids"),
    ("completions", {"prompt_token_ids": [1000]}, "prompt_token_ids"),
    ("completions", {"prompt": "a", "messages": []}, "messages"),
]


@pytest.mark.parametrize(("api_name", "request_", "param"), WRONG, ids=lambda v: str(v)[-30:])
def test_a_wrong_request_is_named(
    api: ApiPage, api_name: str, request_: dict[str, Any] | None, param: str
) -> None:
    error = api.fails(f"return inpage.{api_name}.create(given ?? undefined)", request_)
    assert (error["code"], error["param"]) == ("invalid_request", param)
    assert "traceback" not in error


@pytest.mark.parametrize("options", [{"include_usage": "yes"}, {"usage": True}, [], "all"])
def test_wrong_stream_options(api: ApiPage, options: Any) -> None:
    error = api.fails(COLLECT, {**CHAT, "stream_options": options})
    assert error["code"] == "invalid_request"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "() => 1", "10n", "Symbol()"])
def test_what_json_cannot_hold_is_named(api: ApiPage, value: str) -> None:
    body = f"return inpage.chat.completions.create({{ ...given, temperature: {value} }})"
    error = api.fails(body, CHAT)
    assert (error["code"], error["param"]) == ("invalid_request", "temperature")


def test_null_is_the_default(api: ApiPage) -> None:
    nothing = dict.fromkeys(("stream", "stream_options", "model", "stop", "seed", "logit_bias"))
    assert api.run("return inpage.chat.completions.create(given)", {**CHAT, **nothing})["choices"]


def test_an_overflow_has_both_numbers(api: ApiPage) -> None:
    request = {**GREEDY, "prompt_token_ids": [7] * 600}
    for body in ("return inpage.completions.create(given)", COLLECT.replace("chat.", "")):
        error = api.fails(body, request)
        assert error["code"] == "context_length_exceeded"
        assert (error["prompt_tokens"], error["context"]) == (600, CONTEXT)
        assert "600" in error["message"]
        assert str(CONTEXT) in error["message"]


def test_dropped_turns_are_told(api: ApiPage) -> None:
    turn = {"content": "B-C-D-E-F-G-H-I-J-K-L-M-N"}
    messages = [{"role": ("user", "assistant")[at % 2], **turn} for at in range(41)]
    request = {**GREEDY, "messages": messages, "context_overflow": "drop_oldest"}
    usage = api.run("return inpage.chat.completions.create(given)", request)["usage"]
    assert usage["extra"]["dropped_messages"] > 10
    assert usage["prompt_tokens"] < CONTEXT


def test_without_a_model(api: ApiPage) -> None:
    api.run("await inpage.unload()")
    for body in (
        "return inpage.chat.completions.create(given)",
        COLLECT,
        "return inpage.countTokens(given.messages)",
        "return inpage.verify()",
    ):
        error = api.fails(body, CHAT)
        assert error["code"] == "no_model"
        assert "load one first" in error["message"]
