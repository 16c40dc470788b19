"""Connections: under which names the server answers, how long it waits, how it ends."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from inpage import http_server
from serve import create_app
from tests.conftest import START_SECONDS, first_line
from tests.tools.small_site import make_site, serving_app, write_model
from tools.compress import VariantStore
from tools.files import ROOT

pytestmark = pytest.mark.long  # it waits for what times out


def test_a_body_does_not_wait_until_its_headers_have_arrived() -> None:
    with (
        http_server.listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# ---- names


@pytest.fixture(scope="module")
def port(served: tuple[Path, int]) -> int:
    return served[1]


def answer_to(port: int, *host: str, path: str = "/", version: str = "1.1") -> bytes:
    """Return the whole answer to a request with these Host headers."""
    lines = [f"GET {path} HTTP/{version}", *(f"Host: {name}" for name in host), "Connection: close"]
    with socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        with connection.makefile("rb") as answer:
            return answer.read()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost"])
def test_its_own_names(port: int, name: str) -> None:
    assert answer_to(port, f"{name}:{port}").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example:{port}", "evil.example", "localhost", "127.0.0.1", "localhost:1", ""),
        *("localhost.evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost:{port}.x"),
        *("evil.example:{port}@localhost:{port}", "localhost.:{port}", "[::1]:{port}", "0:{port}"),
        *("127.1:{port}", "2130706433:{port}", "192.168.0.1:{port}", "localhost:{port}, evil"),
        "<script>alert(1)</script>" + "x" * 1000,
    ],
)
def test_another_name(port: int, host: str) -> None:
    host = host.format(port=port)
    for path in ("/", "/models.json", "/models/tiny/manifest.json"):
        answer = answer_to(port, host, path=path).decode()
        assert answer.startswith("HTTP/1.1 421 ")
        assert f"This server is localhost:{port} or 127.0.0.1:{port}, and not " in answer
        assert "--allow-host" in answer
        assert "content-type: text/plain; charset=utf-8\r\n" in answer
        assert "x-content-type-options: nosniff\r\n" in answer
        assert "tiny" not in answer
        assert len(answer) < 1500


def test_no_name_and_two(port: int) -> None:
    assert answer_to(port, version="1.0").startswith(b"HTTP/1.1 421 ")
    both = answer_to(port, f"localhost:{port}", "evil.example")
    assert both.startswith(b"HTTP/1.1 400 ")


@pytest.fixture(scope="module")
def allowing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Run a server with further names and yield its port."""
    root = tmp_path_factory.mktemp("allowing")
    app = create_app(make_site(root), VariantStore(root / "cache"), ["Chat.example", "own:8443"])
    with serving_app(app) as port:
        yield port


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("chat.example", 200), ("CHAT.EXAMPLE:443", 200), ("own:8443", 200)),
        *(("own", 421), ("own:443", 421), ("sub.chat.example", 421), ("chat.example:x", 421)),
    ],
)
def test_further_names(allowing: int, host: str, status: int) -> None:
    assert answer_to(allowing, host).startswith(f"HTTP/1.1 {status} ".encode())


def test_the_command_takes_further_names(tmp_path: Path) -> None:
    with serving(tmp_path, "--allow-host", "chat.example") as (_, port):
        assert answer_to(port, "chat.example").startswith(b"HTTP/1.1 200 ")
        assert answer_to(port, "evil.example").startswith(b"HTTP/1.1 421 ")


# ---- waiting


BIG = 64 << 20  # more than the system takes in for a client that does not read
BIG_URL = "/models/big/w.safetensors"
# What runs in a shell's background would ignore Ctrl-C, and so would its children.
RUN = """
import signal, sys, serve
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(serve.main(sys.argv[1:]))
"""


def write_big_model(models: Path) -> None:
    write_model(models / "big", {"graph.json": b"{}", "w.safetensors": bytes(BIG)})


@contextmanager
def serving(
    models: Path, *options: str, script: str = RUN
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run a serve.py of its own and yield it and its port."""
    command = [sys.executable, "-c", script, "--port", "0", "--models", str(models), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=pipe, stderr=pipe) as process:
        try:
            port = int(first_line(process).rstrip("/").rpartition(":")[2])
            while first_line(process) not in ("Ctrl-C stops it", ""):
                pass  # the models that it found
            yield process, port
        finally:
            process.kill()


def request_for(port: int, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode()


@pytest.fixture(params=[0.5])
def impatient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[int]:
    """Run a server that waits for half a second, or longer, and yield its port."""
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", request.param)
    app = create_app(make_site(tmp_path), VariantStore(tmp_path / "cache"))
    patience = {"timeout_keep_alive": START_SECONDS}
    with serving_app(app, http=http_server.ImpatientProtocol, **patience) as port:
        yield port


def ends(connection: socket.socket, sent: bytes) -> bool:
    """Return whether nothing but the end comes back.

    A slow machine may see it before it has sent.
    """
    try:
        connection.sendall(sent)
        return connection.recv(1) == b""
    except ConnectionError:
        return True


# For what must come in time on a machine that has other things to do.
in_seconds = pytest.mark.parametrize("impatient", [3], indirect=True)


@pytest.mark.parametrize(
    "sent",
    [b"", b"GE", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "],
    ids=["nothing", "half a line", "a line", "half a header"],
)
def test_a_request_that_does_not_come_whole(impatient: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", impatient), timeout=START_SECONDS) as connection:
        assert ends(connection, sent)


def test_headers_that_trickle(impatient: int) -> None:
    """Each piece comes in time, the whole does not."""
    with socket.create_connection(("127.0.0.1", impatient), timeout=0.1) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        for _ in range(START_SECONDS * 10):
            with suppress(TimeoutError):
                assert ends(connection, b"x")
                return
    pytest.fail("the server waits forever")


@in_seconds
def test_half_a_second_request(impatient: int) -> None:
    with socket.create_connection(("127.0.0.1", impatient), timeout=START_SECONDS) as connection:
        connection.sendall(request_for(impatient, "/kernels/add.wgsl"))
        with connection.makefile("rb") as answer:
            while answer.readline() != b"\r\n":
                pass
            assert answer.read(11) == b"fn add() {}"
            connection.sendall(b"GET /")
            assert answer.read() == b""


@in_seconds
def test_a_slow_download_is_not_cut(impatient: int, tmp_path: Path) -> None:
    """Its reader stops for longer than a request may take."""
    write_big_model(tmp_path / "models")
    address = ("127.0.0.1", impatient)
    with socket.create_connection(address, timeout=START_SECONDS) as connection:
        connection.sendall(request_for(impatient, BIG_URL))
        with socket.create_connection(address, timeout=START_SECONDS) as later:
            assert ends(later, b""), "a request that began later is overdue"
        with connection.makefile("rb") as answer:
            while answer.readline() != b"\r\n":
                pass
            assert len(answer.read(BIG)) == BIG


# ---- leaving


@pytest.mark.parametrize("busy", [False, True])
def test_ctrl_c_is_quiet(tmp_path: Path, busy: bool) -> None:
    if busy:
        write_big_model(tmp_path)
    with serving(tmp_path) as (process, port), socket.socket() as client:
        client.connect(("127.0.0.1", port))
        if busy:
            client.sendall(request_for(port, BIG_URL))
            assert client.recv(15) == b"HTTP/1.1 200 OK"
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=START_SECONDS)
    assert (process.returncode, *output) == (0, "\n", "")


SLOWLY = f"""
import time, tools.site
def describe(site):
    print("working", flush=True)
    time.sleep(0.3)
    return {{}}
tools.site.Site.describe = describe
{RUN}
"""


def test_ctrl_c_while_something_is_being_made_is_quiet(tmp_path: Path) -> None:
    with serving(tmp_path, script=SLOWLY) as (process, port), socket.socket() as client:
        client.connect(("127.0.0.1", port))
        client.sendall(request_for(port, "/site.json"))
        assert first_line(process) == "working"
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=START_SECONDS)
    assert (process.returncode, *output) == (0, "\n", "")
