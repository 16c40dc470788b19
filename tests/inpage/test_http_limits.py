"""The limits for clients of `inpage api`: odd texts, too much, too slowly, and too many at once."""

import asyncio
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any, cast

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from inpage import http_server
from inpage.http_api import create_api
from py_runtime.base.errors import ContextLengthError
from py_runtime.tokens import Tokenizer
from tests.conftest import START_SECONDS
from tests.fuzz.request_targets import unloaded
from tests.runners import wait
from tests.tools.small_site import serving_app

JSON = {"Content-Type": "application/json"}
HALF = "\ud800"
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "a"}]}
TOOL = {"name": "now", "parameters": {"type": "object", "properties": {HALF: {}}}}
SCHEMA = {"schema": {"type": "object", "properties": {"a": {"const": HALF}}}}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving_app(create_api(unloaded())) as port:
        yield port


def answered(
    port: int, path: str, body: bytes | None = None, host: str | None = None
) -> tuple[int, bytes, Any]:
    """Return the status, the body and the headers of an answer."""
    address = f"http://localhost:{port}/v1{path}"
    headers = {**(JSON if body else {}), **({"Host": host} if host else {})}
    request = urllib.request.Request(address, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def refused(port: int, path: str, body: bytes | None = None) -> tuple[int, Any]:
    """Return the status and the error of an answer, which is in OpenAI's shape."""
    status, text, _ = answered(port, path, body)
    error = json.loads(text)["error"]
    assert error.keys() >= {"message", "type", "param", "code"}
    assert len(text) < 1000
    return status, error


# Texts and values --------------------------------------------------------------------------------

HALVES: dict[str, tuple[str, dict[str, Any]]] = {
    "content": ("/chat/completions", {"messages": [{"role": "user", "content": HALF}]}),
    "a part": (
        "/chat/completions",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": HALF}]}]},
    ),
    "role": ("/chat/completions", {"messages": [{"role": HALF, "content": "a"}]}),
    "a key": ("/chat/completions", {**CHAT, HALF: 1}),
    "a long key": ("/chat/completions", {**CHAT, HALF * 3000: 1}),
    "stop": ("/chat/completions", {**CHAT, "stop": ["a", HALF]}),
    "user": ("/chat/completions", {**CHAT, "user": HALF}),
    "metadata": ("/chat/completions", {**CHAT, "metadata": {HALF: "a"}}),
    "tools": ("/chat/completions", {**CHAT, "tools": [{"type": "function", "function": TOOL}]}),
    "template": ("/chat/completions", {**CHAT, "chat_template_kwargs": {HALF: HALF}}),
    "effort": ("/chat/completions", {**CHAT, "reasoning_effort": HALF}),
    "schema": (
        "/chat/completions",
        {**CHAT, "response_format": {"type": "json_schema", "json_schema": SCHEMA}},
    ),
    "model": ("/completions", {"prompt": "a", "model": HALF}),
    "prompt": ("/completions", {"prompt": f"a{HALF}"}),
    "logit_bias": ("/completions", {"prompt": "a", "logit_bias": {HALF: 1}}),
    "input": ("/embeddings", {"input": ["a", HALF]}),
    "format": ("/embeddings", {"input": "a", "encoding_format": HALF}),
}


@pytest.mark.parametrize(("path", "fields"), HALVES.values(), ids=HALVES)
def test_half_of_a_surrogate_pair(port: int, path: str, fields: dict[str, Any]) -> None:
    status, error = refused(port, path, json.dumps(fields).encode())
    assert status == 400
    assert "half of a surrogate pair, U+D800 at character" in error["message"]
    assert error["type"] == "invalid_request_error"


BODIES = {
    "not a number": (b'{"prompt": "a", "temperature": NaN}', "NaN is not a JSON number"),
    "infinite": (b'{"prompt": "a", "temperature": 1e999}', "temperature must be a number"),
    "a huge number": (b'{"prompt": "a", "max_tokens": ' + b"9" * 5000 + b"}", "of 5000 digits"),
    "a large token": (b'{"prompt_token_ids": [' + b"9" * 900 + b"]}", "the prompt holds 999"),
    "deep": (b'{"prompt": ' + b"[" * 90_000 + b"]" * 90_000 + b"}", "nested too deeply"),
    "twice": (b'{"prompt": "a", "prompt": "b"}', "'prompt' appears twice"),
    "not UTF-8": (b'{"prompt": "\xff"}', "byte 12 is not UTF-8"),
    "UTF-16": ('{"prompt": "a"}'.encode("utf-16"), "byte 0 is not UTF-8"),
    "a long model": (b'{"prompt": "a", "model": "' + b"x" * 10**6 + b'"}', "the loaded model is"),
    "a long name": (b'{"prompt": "a", "' + b"x" * 10**6 + b'": 1}', "is not a field"),
    "a long choice": (b'{"prompt": "a", "stream": "' + b"x" * 10**6 + b'"}', "true or false"),
    "a list": (b'{"prompt": [["a"]]}', "the prompt holds ['a'], not a token"),
}


@pytest.mark.parametrize(("body", "words"), BODIES.values(), ids=BODIES)
def test_a_body_that_cannot_be_used(port: int, body: bytes, words: str) -> None:
    status, error = refused(port, "/completions", body)
    assert status == (404 if error["param"] == "model" else 400)
    assert words in error["message"]


def test_roles_and_messages_of_any_length(port: int) -> None:
    for message in ({"role": "x" * 10**6}, {"role": "user", "content": {"a": "x" * 10**6}}):
        status, error = refused(
            port, "/chat/completions", json.dumps({"messages": [message]}).encode()
        )
        assert (status, error["param"]) == (400, "messages")


def test_a_message_that_is_far_too_long(port: int) -> None:
    long = [{"role": "user", "content": "the fox " * 10**6}]
    status, error = refused(port, "/chat/completions", json.dumps({"messages": long}).encode())
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert "more than" in error["message"]


def test_a_fault_of_the_server_has_openais_shape_too(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("inpage.http_api.Completion", fail)
    status, error = refused(port, "/completions", b'{"prompt": "a"}')
    assert (status, error["type"]) == (500, "server_error")


def test_other_methods(port: int) -> None:
    for path, body, wanted in (("/completions", None, "POST"), ("/models", b"{}", "GET")):
        status, text, headers = answered(port, path, body)
        assert (status, headers["allow"]) == (405, wanted)
        assert f"takes {wanted}, not" in json.loads(text)["error"]["message"]


# Too much at once --------------------------------------------------------------------------------


def test_a_long_prompt_is_refused_before_all_of_it_is_encoded(port: int) -> None:
    status, error = refused(
        port, "/completions", json.dumps({"prompt": "the fox " * 10**6}).encode()
    )
    assert (status, error["code"]) == (400, "context_length_exceeded")
    assert "the prompt has at least 65537 tokens, and the model's context holds 800" in str(error)
    assert error["prompt_tokens"] == 65537
    assert "the prompt has 900 tokens" in str(ContextLengthError(900, 800))


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/completions", {"prompt": "the fox " * 20_000}),
        ("/chat/completions", {"messages": [{"role": "user", "content": "the fox " * 20_000}]}),
        ("/embeddings", {"input": ["the fox " * 20_000], "pooling": "none"}),
    ],
)
def test_others_are_answered_while_a_long_text_is_encoded(
    port: int, path: str, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, others = threading.Event(), threading.Event()
    encode = Tokenizer.encode

    def slow(*given: Any, **named: Any) -> list[int]:
        begun.set()
        assert others.wait(START_SECONDS), "nobody else is answered"
        return encode(*given, **named)

    monkeypatch.setattr(Tokenizer, "encode", slow)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(refused, port, path, json.dumps(fields).encode())
        assert begun.wait(START_SECONDS)
        assert answered(port, "/models")[0] == 200
        others.set()
        assert asked.result()[0] == 400


# Too slowly --------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Run a server that waits for half a second and yield its port."""
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.5)
    with serving_app(
        create_api(unloaded()),
        http=http_server.ImpatientProtocol,
        timeout_keep_alive=START_SECONDS,
    ) as port:
        yield port


def head(port: int, length: int, path: str = "/v1/completions") -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        f"Host: localhost:{port}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    )
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/models"])
def test_a_body_that_never_arrives(impatient: int, path: str) -> None:
    """The server may want it or have answered without it."""
    with socket.create_connection(("127.0.0.1", impatient), timeout=START_SECONDS) as connection:
        connection.sendall(head(impatient, 100, path) + b'{"prompt"')
        with connection.makefile("rb") as answer:
            answer.read()  # to its end


def test_a_body_that_trickles(impatient: int) -> None:
    """Each piece comes in time, the whole does not."""
    with socket.create_connection(("127.0.0.1", impatient), timeout=0.05) as connection:
        connection.sendall(head(impatient, 10**6))
        for _ in range(START_SECONDS * 20):
            try:
                connection.sendall(b" ")
                if connection.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    pytest.fail("the server waits forever")


BIG = 64 << 20  # more than the system takes in for a client that does not read


async def in_pieces(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer as far as the reader has read."""
    await send({"type": "http.response.start", "status": 200})
    for _ in range(64):
        await send({"type": "http.response.body", "body": bytes(BIG // 64), "more_body": True})
    await send({"type": "http.response.body"})


async def all_at_once(scope: Scope, receive: Receive, send: Send) -> None:
    """Complete an answer while nothing of it is read."""
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": bytes(BIG)})


@pytest.mark.parametrize("keep_alive", [0, START_SECONDS])
@pytest.mark.parametrize("app", [in_pieces, all_at_once])
def test_a_client_that_never_reads_its_answer(
    app: ASGIApp, keep_alive: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer may be under way or complete, and its connection be closing already."""
    monkeypatch.setattr(http_server, "READ_SECONDS", 0.1)
    ended = threading.Event()

    class Watched(http_server.ImpatientProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            ended.set()

    with (
        serving_app(app, http=Watched, timeout_keep_alive=keep_alive) as port,
        socket.create_connection(("127.0.0.1", port)) as connection,
    ):
        connection.sendall(head(port, 0))
        assert ended.wait(START_SECONDS), "the server waits forever"


class Reader:
    """A transport whose client takes some of what is left, each time it is looked at."""

    def __init__(self, *left: int) -> None:
        self.left = list(left)
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.left.pop(0)

    def is_closing(self) -> bool:
        return True

    def abort(self) -> None:
        self.aborted = True


def test_a_client_that_reads_slowly_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one that has taken nothing since the last look."""
    monkeypatch.setattr(http_server, "READ_SECONDS", 0)

    async def cut_with(*left: int) -> list[int]:
        config = uvicorn.Config(in_pieces, http=http_server.ImpatientProtocol)
        protocol = http_server.ImpatientProtocol(config, ServerState(), {})
        reader = Reader(*left)
        protocol.transport, protocol.flow = cast("Any", reader), FlowControl(cast("Any", reader))
        protocol.watch_reader()
        while reader.left and not reader.aborted:
            await asyncio.sleep(0)
        return reader.left

    assert wait(cut_with(3, 2, 1, 0, 0, 0)) == []
    assert wait(cut_with(3, 2, 2, 1, 0)) == [1, 0]


# Too many ----------------------------------------------------------------------------------------


def test_idle_connections_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connections that wait longest are closed, one for each that comes."""
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 4)
    app = create_api(unloaded())
    with (
        serving_app(app, http=http_server.ImpatientProtocol) as port,
        ExitStack() as stack,
    ):
        idle = []
        for _ in range(10):
            connection = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)
            idle.append(stack.enter_context(connection))
        assert answered(port, "/models")[0] == 200
        for connection in idle[:6]:
            with suppress(ConnectionError):
                assert connection.recv(1) == b""
        idle[-1].settimeout(0.1)
        with pytest.raises(TimeoutError):
            idle[-1].recv(1)


# For everybody -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "address", "is_open"),
    [
        ("127.0.0.1", "http://127.0.0.1:80", False),
        ("::1", "http://[::1]:80", False),
        ("localhost", "http://localhost:80", False),
        ("192.168.0.7", "http://192.168.0.7:80", False),
        ("0.0.0.0", "http://localhost:80", True),
        ("::", "http://localhost:80", True),
    ],
)
def test_a_server_for_everybody_says_so(host: str, address: str, is_open: bool) -> None:
    assert http_server.address_of(host, 80) == address
    told = "\n".join(http_server.notes_of(host, 80, "they can do much"))
    assert ("whoever reaches this machine" in told and "they can do much" in told) == is_open
    assert ("--allow-host" in told) == is_open


@pytest.mark.parametrize(
    ("name", "status"),
    [("127.0.0.1", 200), ("localhost", 200), ("0.0.0.0", 200), ("evil.example", 421)],
)
def test_a_server_for_everybody_answers_to_its_addresses(name: str, status: int) -> None:
    with serving_app(create_api(unloaded(), ["0.0.0.0"])) as port:
        found, _, headers = answered(port, "/models", host=f"{name}:{port}")
    assert found == status
    assert headers["x-content-type-options"] == "nosniff"
