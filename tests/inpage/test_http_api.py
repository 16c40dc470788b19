"""`inpage api MODEL`, asked by OpenAI's own client; and answers that nobody waits for."""

import asyncio
import json
import socket
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pydantic
import pytest

from inpage.http_api import MAX_BODY, create_api
from inpage.http_server import AnnouncingServer, config_of, listen
from py_runtime.base.cancel import CancelToken
from py_runtime.generation.pieces import Piece, Usage
from tests.conftest import first_line, running
from tests.toy_model import NAME
from tools.files import ROOT


class Rain(pydantic.BaseModel):
    on: bool


GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 6, "extra_body": {"ignore_eos": True}}
QUESTION: Any = [{"role": "user", "content": "the quick brown fox"}]
USAGE = Usage(prompt_tokens=1, completion_tokens=1, cached_tokens=0)


@pytest.fixture(scope="module")
def address(toy_model: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "inpage", "api", str(toy_model), "--port", "0"]
    with running(command, cwd=ROOT) as process:
        line = first_line(process)
        assert line.startswith("inpage is at http://127.0.0.1:"), line
        yield line.removeprefix("inpage is at ")


@pytest.fixture
def client(address: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=address, api_key="none", max_retries=0)


def test_the_model_is_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [NAME]
    assert client.models.retrieve(NAME).owned_by == "inpage"
    with pytest.raises(openai.NotFoundError, match=f"the loaded model is {NAME}"):
        client.models.retrieve("gpt-4")


def test_a_stream_says_what_a_whole_answer_says(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=NAME, messages=QUESTION, **GREEDY)
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage is not None
    assert whole.usage.completion_tokens == 6
    stream = client.chat.completions.create(
        model=NAME, messages=QUESTION, stream=True, stream_options={"include_usage": True}, **GREEDY
    )
    *chunks, last = stream
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert last.usage is not None
    assert last.usage.completion_tokens == 6


RAIN: Any = {
    "type": "function",
    "function": {
        "name": "rain",
        "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}},
    },
}
CALLING: dict[str, Any] = {"tools": [RAIN], "tool_choice": "required", "seed": 5}


def test_a_tool_is_called(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=NAME, messages=QUESTION, **CALLING)
    (choice,) = whole.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "rain"
    assert json.loads(call.function.arguments).keys() <= {"on"}
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "It rains."}
    said: Any = choice.message
    answer = client.chat.completions.create(
        model=NAME, messages=[*QUESTION, said, result], **GREEDY
    )
    assert answer.choices[0].message.content


def test_a_streamed_call_is_put_together(client: openai.OpenAI) -> None:
    """The client's own helper does it, which knows the schema."""
    tool = openai.pydantic_function_tool(Rain, name="rain")
    with client.chat.completions.stream(
        model=NAME, messages=QUESTION, tools=[tool], tool_choice="required", seed=5
    ) as stream:
        events = [event.type for event in stream]
        completion = stream.get_final_completion()
    assert "tool_calls.function.arguments.done" in events
    (choice,) = completion.choices
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls or []
    assert isinstance(call.function.parsed_arguments, Rain)


def test_several_answers(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(
        model=NAME, messages=QUESTION, n=2, user="ada", metadata={"a": "b"}, **GREEDY
    )
    assert [choice.index for choice in whole.choices] == [0, 1]
    assert whole.usage is not None
    assert whole.usage.completion_tokens == 12


def test_texts_as_vectors(client: openai.OpenAI) -> None:
    """The client asks for base64 by itself."""
    found = client.embeddings.create(model=NAME, input=["the quick brown fox", "fox"])
    plain = client.embeddings.create(model=NAME, input="fox", encoding_format="float")
    assert len(found.data) == 2
    assert found.data[1].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)
    assert found.usage.total_tokens > plain.usage.total_tokens
    with pytest.raises(openai.BadRequestError, match="dimensions must be an integer"):
        client.embeddings.create(model=NAME, input="fox", dimensions=1000)


def test_a_text_is_completed(client: openai.OpenAI) -> None:
    whole = client.completions.create(model=NAME, prompt="the quick brown fox", **GREEDY)
    stream = client.completions.create(
        model=NAME, prompt="the quick brown fox", stream=True, **GREEDY
    )
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def test_requests_wait_for_each_other(client: openai.OpenAI) -> None:
    answers: list[str | None] = []

    def ask() -> None:
        answer = client.chat.completions.create(model=NAME, messages=QUESTION, **GREEDY)
        answers.append(answer.choices[0].message.content)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 3
    assert len(set(answers)) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_wrong_field_is_named(client: openai.OpenAI, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError, match="temperature must be a number") as caught:
        client.chat.completions.create(model=NAME, messages=QUESTION, temperature=9, stream=stream)
    assert caught.value.param == "temperature"
    with pytest.raises(openai.NotFoundError, match="the loaded model is"):
        client.chat.completions.create(model="gpt-4", messages=QUESTION, stream=stream)


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_does_not_fit(client: openai.OpenAI, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError, match="context holds") as caught:
        client.completions.create(model=NAME, prompt="word " * 4000, stream=stream)
    assert caught.value.code == "context_length_exceeded"


def refused(address: str, path: str, body: bytes, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"{address}{path}", data=body, headers=headers)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    return caught.value.code, caught.value.read().decode()


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "words"),
    [
        ("/completions", b"{}", {"Content-Type": "text/plain"}, 415, "send application/json"),
        ("/completions", b"{", JSON, 400, "the request is not JSON"),
        ("/completions", b"[" * 100_000, JSON, 400, "the request is not JSON"),
        ("/completions", b"[]", JSON, 400, "must be a JSON object"),
        ("/completions", b" " * (MAX_BODY + 1), JSON, 413, "larger than 16.0 MB"),
        ("/images", b"{}", JSON, 404, "there is nothing at '/v1/images'"),
        ("/completions", b"{}", {**JSON, "Host": "elsewhere.example"}, 421, "This server is"),
    ],
)
def test_what_is_not_a_request(
    address: str, path: str, body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    found, text = refused(address, path, body, **headers)
    assert found == status
    assert words in text
    assert "Traceback" not in text


class EndlessModel:
    """A model that says the same for ever, until it is stopped."""

    manifest = SimpleNamespace(name="endless")

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.stopped = threading.Event()

    async def chat(
        self, messages: Any, *, cancel: CancelToken, on_prefill: Any, **fields: Any
    ) -> AsyncIterator[Piece]:
        self.asked.set()
        while not cancel.cancelled:
            if fields.get("seed") != 1:  # the first of these says nothing at all
                yield Piece(text="again ")
            await asyncio.sleep(0.01)
        self.stopped.set()
        yield Piece(finish_reason="abort", usage=USAGE)


@pytest.fixture
def endless() -> Iterator[tuple[EndlessModel, int]]:
    model = EndlessModel()
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    app = create_api(model)  # type: ignore[arg-type]
    server = AnnouncingServer(config_of(app), "")
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield model, port
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"stream": True, "seed": 1}])
def test_whoever_goes_away_stops_the_answer(
    endless: tuple[EndlessModel, int], fields: dict[str, Any]
) -> None:
    model, port = endless
    body = json.dumps({"messages": QUESTION, **fields}).encode()
    head = "\r\n".join(
        (
            "POST /v1/chat/completions HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
    )
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{head}\r\n\r\n".encode() + body)
        assert model.asked.wait(60)
    assert model.stopped.wait(60)
