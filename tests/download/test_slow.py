"""Servers that send little, or nothing, or lead elsewhere; and downloads that are broken off."""

import asyncio
import hashlib
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from py_runtime.base import patience
from py_runtime.base.errors import InpageError, NetworkError, RefusedError
from py_runtime.base.file_facts import FileFacts
from py_runtime.base.patience import MIN_BYTES_PER_SECOND, RATE_SECONDS, Pace, SlowError
from py_runtime.base.progress import Meter
from py_runtime.download import retries
from py_runtime.download.download import Download
from py_runtime.download.file_check import ExpectedFile
from py_runtime.download.host import HostRequests
from py_runtime.download.native_connection import NativeConnection, _Redirects
from py_runtime.hub.native_shelf import NativeShelf
from py_runtime.hub.requests import HubRequests
from tests.background import answering
from tests.conftest import START_SECONDS
from tests.hub.imitation import COMMIT, CRUMBS, HELD, TOKEN, Imitation
from tests.runners import wait
from tools.files import ROOT

NAME, FILE = "toys/slow-GGUF", "x.gguf"
DATA = bytes(range(256)) * 400


# The minimum rate --------------------------------------------------------------------------------


class Line:
    """A line and what comes over it, by a clock of the test's."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pace = Pace("example.org", lambda: self.now)

    def receive(self, blocks: int, nbytes: int, waiting: float, between: float = 0.0) -> None:
        for _ in range(blocks):
            self.pace.begin_waiting()
            self.now += waiting
            self.pace.take(nbytes)
            self.now += between


def test_a_byte_now_and_then_ends_the_download() -> None:
    enough = int(RATE_SECONDS / 0.5)
    Line().receive(enough - 1, 1, 0.5)
    with pytest.raises(
        SlowError, match=r"example\.org is too slow: it sent 120 bytes in 60 seconds"
    ):
        Line().receive(enough, 1, 0.5)


@pytest.mark.parametrize(
    ("nbytes", "waiting", "between"),
    [
        pytest.param(2500, 0.5, 0, id="a slow line"),
        pytest.param(MIN_BYTES_PER_SECOND * 50, 50, 0, id="long pauses"),
        pytest.param(16, 0.001, 30, id="a slow disk"),
    ],
)
def test_what_is_slow_but_comes_is_waited_for(nbytes: int, waiting: float, between: float) -> None:
    Line().receive(10_000, nbytes, waiting, between)


def test_a_line_that_grows_slow() -> None:
    line = Line()
    line.receive(60, 10**6, 1.0)
    with pytest.raises(SlowError):
        line.receive(60, 100, 1.0)


# Natively, from an imitation of the Hub ----------------------------------------------------------


@pytest.fixture(autouse=True)
def stocked(hub: Imitation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0)
    monkeypatch.setattr("tests.hub.imitation.Handler.wbufsize", 0)
    hub.faults = {}
    hub.sent.clear()
    hub.left.clear()
    hub.go_on.clear()
    hub.put(NAME, x__gguf=DATA)
    hub.take_seen()


def downloading(hub: Imitation, folder: Path) -> Download:
    facts = FileFacts(len(DATA), hashlib.sha256(DATA).hexdigest())
    remote = HubRequests(hub.hub, NativeConnection(), None).file(NAME, COMMIT, FILE)
    expected = ExpectedFile(FILE, facts, "the Hub lists")
    return Download(expected, remote, NativeShelf(folder), Meter())


async def until_sent(hub: Imitation, task: "asyncio.Task[bool]") -> None:
    while not hub.sent[FILE] > len(DATA) // 2 and not task.done():
        await asyncio.sleep(0.01)


def test_cancelling_closes_the_connection(hub: Imitation, tmp_path: Path) -> None:
    hub.faults[FILE] = HELD

    async def cancelled() -> None:
        task = asyncio.ensure_future(downloading(hub, tmp_path).run())
        await until_sent(hub, task)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    wait(cancelled())
    assert hub.left.wait(START_SECONDS)
    (begun,) = tmp_path.glob("begun-*")
    assert begun.stat().st_size > 0, "what has come is kept"


DOWNLOAD = """
import asyncio, signal, sys
import numpy as np
from py_runtime.download.native_connection import NativeConnection
signal.signal(signal.SIGINT, signal.default_int_handler)
async def download():
    answer = await NativeConnection().open(sys.argv[1], {})
    memory = np.empty(1 << 20, np.uint8)
    try:
        while len(await answer.next_block(memory)):
            pass
    finally:
        answer.close()
try:
    asyncio.run(download())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_slow_download(hub: Imitation) -> None:
    hub.faults[FILE] = HELD
    address = f"{hub.hub}/{NAME}/resolve/{COMMIT}/{FILE}"
    command = [sys.executable, "-c", DOWNLOAD, address]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            while hub.sent[FILE] <= len(DATA) // 2 and process.poll() is None:
                assert not hub.left.wait(0.05)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=START_SECONDS)[0] == "interrupted\n"
        finally:
            process.kill()


def test_a_download_that_is_too_slow_goes_on_another_time(
    hub: Imitation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "RATE_SECONDS", 0.5)
    monkeypatch.setattr(patience, "MIN_BYTES_PER_SECOND", 10**9)
    hub.faults[FILE] = HELD
    with pytest.raises(SlowError, match=r"too slow: .* have arrived and are kept: a download goes"):
        wait(downloading(hub, tmp_path).run())
    assert hub.left.wait(START_SECONDS)
    (begun,) = tmp_path.glob("begun-*")
    there = begun.stat().st_size
    hub.faults = {}
    hub.take_seen()
    monkeypatch.setattr(patience, "MIN_BYTES_PER_SECOND", 0)
    wait(downloading(hub, tmp_path).run())
    assert [s.headers.get("range") for s in hub.seen if s.host == "cdn"] == [f"bytes={there}-"]


def test_a_few_bytes_with_each_answer_end_the_download(hub: Imitation, tmp_path: Path) -> None:
    hub.faults[FILE] = CRUMBS
    with pytest.raises(NetworkError, match="broke off after 80 of 102400 bytes"):
        wait(downloading(hub, tmp_path).run())


# Servers of all kinds ----------------------------------------------------------------------------


class Led(BaseHTTPRequestHandler):
    """A handler that redirects to `target`, as often as it is asked."""

    target = ""
    seen: list[str] = []  # noqa: RUF012 (of each subclass)

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization", ""))
        self.send_response(302)
        self.send_header("Location", self.target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *details: Any) -> None:
        pass


@pytest.fixture
def led() -> Iterator[tuple[str, type[Led]]]:
    handler = type("Handler", (Led,), {"seen": []})
    with answering(HTTPServer(("127.0.0.1", 0), handler)) as address:
        yield address, handler


def opened(url: str, **headers: str) -> Any:
    return wait(NativeConnection().open(url, headers))


@pytest.mark.parametrize("scheme", ["ftp", "file", "data", "gopher", "javascript", "FTP"])
def test_redirects_lead_to_http_and_https_alone(led: tuple[str, type[Led]], scheme: str) -> None:
    """Nobody is asked at the address they lead to."""
    address, handler = led
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        handler.target = f"{scheme}://127.0.0.1:{elsewhere.getsockname()[1]}/x.gguf"
        with pytest.raises(RefusedError, match="which is not followed: only a few redirects are"):
            opened(address)
        elsewhere.settimeout(0)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def test_redirects_in_a_circle_end(led: tuple[str, type[Led]]) -> None:
    address, handler = led
    handler.target = address
    with pytest.raises(RefusedError, match="which is not followed"):
        opened(address)
    assert len(handler.seen) <= 11


def test_a_redirect_to_another_host_loses_the_token(led: tuple[str, type[Led]]) -> None:
    """A redirect back does not bring it along again."""
    address, handler = led
    other: Any = type("Other", (Led,), {"seen": [], "target": f"{address}again"})
    with answering(HTTPServer(("127.0.0.1", 0), other)) as elsewhere:
        handler.target = elsewhere
        with pytest.raises(RefusedError):
            opened(address, Authorization=f"Bearer {TOKEN}")
    assert handler.seen[0] == f"Bearer {TOKEN}"
    assert not any([*handler.seen[1:], *other.seen])


def test_a_redirect_from_https_to_http_is_not_followed() -> None:
    def follow(before: str, after: str) -> Any:
        request = urllib.request.Request(before)
        return _Redirects().redirect_request(request, BytesIO(), 302, "", {}, after)

    with pytest.raises(RefusedError, match="none from https to http"):
        follow("https://hub.example/x", "http://hub.example/x")
    for before, after in (("https", "https"), ("http", "https"), ("http", "http")):
        found = follow(f"{before}://hub.example/x", f"{after}://cdn.example/x")
        assert found.full_url == f"{after}://cdn.example/x"


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: "])
def test_an_answer_that_does_not_begin(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes, or a byte of its headers now and then."""
    monkeypatch.setattr(patience, "STALLED_SECONDS", 0.5)
    ended = threading.Event()

    def trickle(listener: socket.socket) -> None:
        connection = listener.accept()[0]
        with connection:
            connection.sendall(sent)
            connection.settimeout(0.05)
            while not ended.is_set():
                try:
                    if sent:
                        connection.sendall(b"x")
                    if not connection.recv(1 << 16):
                        ended.set()
                except TimeoutError:
                    pass
                except OSError:
                    ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=trickle, args=(listener,), daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/x.gguf"
        with pytest.raises(InpageError, match=r"has sent nothing for 0.5 seconds|timed out"):
            wait(HostRequests(NativeConnection()).ask(address, "x", {}))
        assert ended.wait(START_SECONDS), "the connection is closed"
