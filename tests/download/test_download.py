"""The downloader by itself: a host, a shelf and a sink that do as the test says."""

import hashlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import (
    NetworkError,
    NotFoundError,
    QuotaError,
    StorageBusyError,
    StorageError,
)
from py_runtime.base.file_blocks import BLOCK_UNIT
from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ModelFileError, ModelHashError
from py_runtime.base.patience import SlowError
from py_runtime.base.progress import Meter
from py_runtime.download import retries
from py_runtime.download.download import Download
from py_runtime.download.file_check import ExpectedFile
from py_runtime.download.remote_file import RemoteFile
from tests.runners import wait

DATA = np.random.default_rng(5).integers(0, 256, 1003, np.uint8).tobytes()
FACTS = FileFacts(len(DATA), hashlib.sha256(DATA).hexdigest())


class Sent:
    """An answer, a few bytes at a time; whoever reads behind its end gets `fault`, if any."""

    def __init__(self, status: int, data: bytes, content_range: str, fault: Exception | None):
        self.status = status
        self.headers = {"content-range": content_range} if content_range else {}
        self.is_closed = False
        self._data, self._fault = data, fault

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        if not self._data and self._fault is not None:
            raise self._fault
        count = min(100, len(memory))
        block, self._data = self._data[:count], self._data[count:]
        memory[: len(block)] = np.frombuffer(block, np.uint8)
        return memory[: len(block)]

    def close(self) -> None:
        self.is_closed = True


class Server:
    """A Host with one file; `cuts` are the places where its answers end, one after the other."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data = data
        self.cuts: list[int] = []
        self.has_ranges = True
        self.fault: Exception | None = None  # at the end of an answer that is cut
        self.asked: list[str | None] = []
        self.answers: list[Sent] = []

    async def ask(self, url: str, what: str, more: dict[str, str]) -> Sent:
        wanted = more.get("Range")
        self.asked.append(wanted)
        start = 0
        if wanted is not None and self.has_ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        end = self.cuts.pop(0) if self.cuts else len(self.data)
        fault = self.fault if end < len(self.data) else None
        told = f"bytes {start}-{len(self.data) - 1}/{len(self.data)}" if start else ""
        self.answers.append(Sent(206 if start else 200, self.data[start:end], told, fault))
        return self.answers[-1]


class Written:
    """A Partial that writes over what is there, and cuts nothing off, as a browser's file does."""

    def __init__(self, shelf: "Memory", at: int) -> None:
        self._shelf = shelf
        self._at = at

    async def write(self, block: np.ndarray) -> None:
        if self._shelf.write_fault is not None:
            raise self._shelf.write_fault
        there, self._at = self._shelf.begun, self._at + len(block)
        self._shelf.begun = there[: self._at - len(block)] + block.tobytes() + there[self._at :]

    async def keep(self, facts: FileFacts) -> None:
        self._shelf.kept, self._shelf.begun = self._shelf.begun, b""

    async def drop(self) -> None:
        self._shelf.begun = b""

    async def leave(self) -> None:
        pass


class Memory:
    """A Shelf for one file."""

    def __init__(self, begun: bytes = b"") -> None:
        self.begun, self.kept = begun, b""
        self.kept_by_another_tab = b""
        self.is_busy = False  # another tab writes to what was begun
        self.is_readable = True
        self.write_fault: StorageError | None = None
        self.begins: list[int] = []

    def has(self, facts: FileFacts) -> bool:
        return len(self.kept) == facts.size

    def begun_bytes(self, facts: FileFacts) -> int:
        return len(self.begun)

    async def open_begun(self, facts: FileFacts) -> Sent:
        if not self.is_readable:
            raise StorageError("not to be read")
        return Sent(200, self.begun, "", None)

    async def drop_begun(self, facts: FileFacts) -> None:
        self.begun = b""

    def take_turn(
        self, facts: FileFacts, tell: Callable[[int], None]
    ) -> AbstractAsyncContextManager[None]:
        self.kept = self.kept_by_another_tab
        return nullcontext()

    async def begin(self, facts: FileFacts, at: int) -> Written:
        if self.is_busy and at:
            raise StorageBusyError("another tab is at it")
        self.begins.append(at)
        return Written(self, at)


class Taken:
    """A Sink that checks what sinks may rely on."""

    def __init__(self) -> None:
        self.data = b""

    async def __call__(self, position: int, block: np.ndarray) -> None:
        self.data = self.data if position else b""
        assert position == len(self.data)
        self.data += block.tobytes()
        assert len(block) > 0
        assert len(block) % BLOCK_UNIT == 0 or len(self.data) == len(DATA)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0)


def run(server: Server, shelf: Memory, **more: Any) -> bool:
    remote = RemoteFile(server, "https://host.example/x", "x")
    expected = ExpectedFile("x", FACTS, "was listed")
    brought: bool = wait(Download(expected, remote, shelf, Meter(), **more).run())
    return brought


def check_brought(server: Server, shelf: Memory) -> None:
    sink = Taken()
    assert run(server, shelf, sink=sink)
    assert sink.data == shelf.kept == DATA
    assert shelf.begun == b""
    assert all(answer.is_closed for answer in server.answers)


def test_a_file_comes_whole() -> None:
    server = Server()
    check_brought(server, Memory())
    assert server.asked == [None]


@pytest.mark.parametrize("begun", [1, 16, 500, 1000, len(DATA)])
def test_it_goes_on_behind_what_is_there(begun: int) -> None:
    server, shelf = Server(), Memory(DATA[:begun])
    check_brought(server, shelf)
    at = begun if begun == len(DATA) else begun - begun % BLOCK_UNIT
    assert shelf.begins == [at]
    assert server.asked == ([] if at == len(DATA) else [f"bytes={at}-" if at else None])


@pytest.mark.parametrize("fault", [None, NetworkError("cut off")])
def test_an_answer_that_breaks_off_is_tried_again(fault: Exception | None) -> None:
    server = Server()
    server.cuts, server.fault = [250, 777], fault
    check_brought(server, Memory())
    assert server.asked == [None, "bytes=240-", "bytes=768-"]


def test_a_host_without_ranges() -> None:
    server, shelf = Server(), Memory(DATA[:160])
    server.has_ranges, server.cuts = False, [500, 100]
    check_brought(server, shelf)
    assert server.asked == ["bytes=160-", "bytes=496-", "bytes=496-"]


@pytest.mark.parametrize("begun", [b"wrong" * 32, DATA + b"more", DATA[:-1] + b"?"])
def test_a_wrong_beginning_is_dropped_and_the_file_comes_whole(begun: bytes) -> None:
    server = Server()
    check_brought(server, Memory(begun))
    assert server.asked[-1] is None


def test_a_beginning_that_cannot_be_read() -> None:
    server, shelf = Server(), Memory(DATA[:160])
    shelf.is_readable = False
    check_brought(server, shelf)
    assert server.asked == [None]


def test_a_beginning_that_another_tab_writes_to() -> None:
    server, shelf = Server(), Memory(DATA[:160])
    shelf.is_busy = True
    check_brought(server, shelf)
    assert (server.asked, shelf.begins) == ([None], [0])


def test_what_another_tab_has_kept_is_not_requested() -> None:
    server, shelf, told = Server(), Memory(), []
    shelf.kept_by_another_tab = DATA
    remote = RemoteFile(server, "https://host.example/x", "x")
    meter = Meter(lambda *step: told.append(step))
    meter.expect("download", "x", len(DATA))
    assert not wait(Download(ExpectedFile("x", FACTS, ""), remote, shelf, meter, Taken()).run())
    assert (server.asked, told) == ([], [("download", len(DATA), len(DATA))])


@pytest.mark.parametrize(
    ("data", "begun", "error", "words"),
    [
        (DATA[:-1] + b"?", b"", ModelHashError, "x is not the file that was listed: its sha256 is"),
        (DATA + b"?", b"", ModelFileError, "x has more than the 1003 bytes it should have"),
        (DATA + b"?", DATA[:160], ModelFileError, "x has more than the 1003 bytes"),
    ],
)
def test_wrong_bytes_are_not_kept(data: bytes, begun: bytes, error: Any, words: str) -> None:
    shelf = Memory(begun)
    with pytest.raises(error, match=words):
        run(Server(data), shelf)
    assert (shelf.begun, shelf.kept) == (b"", b"")


def test_another_size_is_told_before_its_bytes_come() -> None:
    server, shelf = Server(DATA[:800]), Memory()
    with pytest.raises(ModelFileError, match="x has 800 bytes, but should have 1003"):
        run(Server(DATA[:800]), shelf)
    server.cuts = [400]
    with pytest.raises(ModelFileError, match="x has 800 bytes, but should have 1003"):
        run(server, shelf)
    assert shelf.kept == b""


def test_a_size_of_thousands_of_digits_is_none() -> None:
    class Boasting:
        async def ask(self, url: str, what: str, more: dict[str, str]) -> Sent:
            return Sent(206, DATA, f"bytes 0-9/{'9' * 5000}", None)

    assert wait(RemoteFile(Boasting(), "https://a.example/x", "x").open(0)).file_size is None


def test_a_host_that_never_sends_more_is_given_up() -> None:
    server, shelf = Server(), Memory()
    server.has_ranges, server.cuts = False, [400] * 99
    with pytest.raises(NetworkError, match="x broke off after 400 of 1003 bytes"):
        run(server, shelf)
    assert len(server.asked) == 1 + retries.MAX_FAILURES
    assert shelf.begun == DATA[:400]


def test_a_host_that_sends_much_each_time_is_asked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "MUCH", 96)
    server = Server()
    server.cuts = list(range(96, 960, 96))
    assert len(server.cuts) > retries.MAX_FAILURES
    check_brought(server, Memory())


@pytest.mark.parametrize("error", [NotFoundError("gone"), SlowError("too slow")])
def test_a_final_error_is_not_tried_again(error: NetworkError) -> None:
    server, shelf = Server(), Memory()
    server.cuts, server.fault = [400], error
    with pytest.raises(type(error), match=str(error)):
        run(server, shelf)
    assert (server.asked, shelf.begun) == ([None], DATA[:400])


@pytest.mark.parametrize(("cut", "words"), [(400, "400 bytes of the 1.0 kB of x have"), (0, "$")])
def test_a_slow_host_is_told_with_what_is_kept(cut: int, words: str) -> None:
    server = Server()
    server.cuts, server.fault = [cut], SlowError("too slow")
    with pytest.raises(SlowError, match=f"^too slow(; )?{words}"):
        run(server, Memory())


def test_a_full_shelf_keeps_what_has_arrived() -> None:
    shelf = Memory(DATA[:160])
    shelf.write_fault = QuotaError("no room")
    with pytest.raises(QuotaError, match=r"x stopped at 160 bytes of 1.0 kB.*full \(no room\)"):
        run(Server(), shelf)
    assert shelf.begun == DATA[:160]
