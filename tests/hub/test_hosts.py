"""Models at addresses of any host, natively: by ranges, and what goes wrong on the way."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

import inpage
from py_runtime.base.errors import InpageError
from py_runtime.base.model_errors import ModelFileError, ModelHashError
from py_runtime.base.progress import Meter
from py_runtime.download import retries
from py_runtime.download.host import HostRequests
from py_runtime.hub.hosted_source import HostedSource
from py_runtime.model import writer
from py_runtime.model.stores import open_store
from py_runtime.weights.byte_source import HEAD_BYTES
from tests.background import answering
from tests.gguf import small
from tests.pte.counting import write_decoder
from tests.runners import NativeRunner, wait
from tests.toy_model import NAME, TOKENS, greedy_of
from tools.files import ROOT

RANGE = re.compile(r"bytes=(\d+)-(\d*)")
DATA = bytes(np.random.default_rng(7).integers(0, 256, 3 * HEAD_BYTES + 5, np.uint8))
PROMPT = [5, 100, 7, 200, 31]


@dataclass
class Host:
    """A host that serves what is under a folder."""

    folder: Path
    url: str = ""
    ranges: bool = True
    lengths: bool = True  # whether it tells them
    status: int = 200
    cuts: int = 0  # answers that end half-way, from now on
    seen: list[tuple[str, str | None]] = field(default_factory=list)  # (path, range)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    host = Host(tmp_path / "served")
    host.folder.mkdir()
    (host.folder / "data.bin").write_bytes(DATA)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, host)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with answering(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as host.url:
        yield host


def answer(handler: BaseHTTPRequestHandler, host: Host) -> None:
    asked = handler.headers.get("Range")
    path = unquote(handler.path.partition("?")[0])
    host.seen.append((path, asked))
    file = host.folder / path.lstrip("/")
    status = host.status if file.is_file() or host.status != 200 else 404
    data = file.read_bytes() if status == 200 else b""
    start, end = 0, len(data)
    wanted = RANGE.fullmatch(asked or "") if host.ranges and status == 200 else None
    if wanted:
        start = int(wanted[1])
        end = min(int(wanted[2]) + 1, end) if wanted[2] else end
        status = 206
    handler.send_response(status)
    if wanted:
        handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
    if host.lengths:
        handler.send_header("Content-Length", str(end - start))
    handler.end_headers()
    if host.cuts:
        host.cuts -= 1
        end = (start + end) // 2
    handler.wfile.write(data[start:end])


def source(host: Host, path: str = "data.bin") -> HostedSource:
    return HostedSource(host.url + path, HostRequests())


async def in_pieces(read: HostedSource, cuts: list[int]) -> bytes:
    """Return what comes, piece by piece, as uploads want it."""
    data, position = b"", cuts[0]
    async for at, piece in read.pieces(cuts):
        assert at == position
        position = at + len(piece)
        assert len(piece) % 16 == 0 or position in cuts
        assert not [cut for cut in cuts if at < cut < position]
        data += piece.tobytes()
    return data


@pytest.mark.parametrize("lengths", [True, False])
@pytest.mark.parametrize("ranges", [True, False])
def test_a_file_by_parts(host: Host, ranges: bool, lengths: bool) -> None:
    host.ranges, host.lengths = ranges, lengths
    read = source(host, "data.bin?version=2")
    assert read.name == "data.bin"
    assert wait(read.size()) == len(DATA)
    assert wait(read.read(7, 100)) == DATA[7:107]
    assert len(host.seen) == 1, "the beginning came along"
    assert wait(read.read(HEAD_BYTES - 3, 50)) == DATA[HEAD_BYTES - 3 :][:50]
    cuts = [3, 40, HEAD_BYTES + 1, len(DATA)]
    assert wait(in_pieces(read, cuts)) == DATA[3:]
    with pytest.raises(ModelFileError, match=f"data.bin ends after {len(DATA)} bytes"):
        wait(read.read(len(DATA) - 1, 2))


@pytest.mark.parametrize("ranges", [True, False])
def test_an_answer_that_breaks_off(host: Host, ranges: bool) -> None:
    host.ranges = ranges
    read = source(host)
    wait(read.size())
    host.cuts = 3
    assert wait(in_pieces(read, [5, len(DATA)])) == DATA[5:]
    host.cuts = 1000
    with pytest.raises(InpageError, match=r"data.bin broke off after \d+ bytes"):
        wait(in_pieces(read, [5, len(DATA)]))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "there is nothing at {url}x.gguf (127.0.0.1:{port} answered 404): check the address"),
        (403, "download it by yourself, and give its path"),
        (416, "{url}x.gguf ends before the bytes that were requested"),
        (500, "answered 500 to a request for {url}x.gguf: try again later"),
    ],
)
def test_a_host_that_refuses(host: Host, status: int, words: str) -> None:
    host.status = status
    port = host.url.rstrip("/").rpartition(":")[2]
    for where in ("x.gguf", "x.pte", "x"):
        with pytest.raises(InpageError) as caught:
            wait(wait(open_store(host.url + where)).manifest())
        if where == "x.gguf":
            assert words.format(url=host.url, port=port) in str(caught.value)


def test_no_host() -> None:
    with pytest.raises(InpageError, match=r"127.0.0.1:9 did not answer"):
        wait(wait(open_store("http://127.0.0.1:9/x.gguf")).manifest())


@pytest.mark.parametrize("ranges", [True, False])
def test_a_gguf(host: Host, native: NativeRunner, ranges: bool) -> None:
    path = host.folder / "a b.gguf"
    path.write_bytes(small.small_file())
    own = writer(wait(inpage.load(str(path))))
    wanted = wait(own.prefill(PROMPT))
    own.unload()
    host.ranges = ranges
    told: list[Any] = []
    where = f"{host.url}a%20b.gguf?download=true"
    model = writer(wait(inpage.load(where, progress=lambda *step: told.append(step))))
    np.testing.assert_array_equal(wait(model.prefill(PROMPT)), wanted)
    assert model.manifest.name == "a b"
    assert "download" in {phase for phase, _, _ in told}
    model.unload()


def test_a_pte(host: Host, native: NativeRunner) -> None:
    write_decoder(host.folder / "Counter")
    for where in ("Counter/model.pte", "Counter/", "Counter"):
        store = wait(open_store(host.url + where))
        assert wait(store.manifest()).name == "Counter"
    model = writer(wait(inpage.load(f"{host.url}Counter")))
    local = writer(wait(inpage.load(str(host.folder / "Counter"))))
    np.testing.assert_array_equal(wait(model.prefill([1, 2])), wait(local.prefill([1, 2])))
    model.unload()
    local.unload()


@pytest.mark.parametrize("ending", ["", "/", "/manifest.json"])
def test_a_folder(host: Host, toy_model: Path, ending: str) -> None:
    """It is fetched once, and checked."""
    shutil.copytree(toy_model, host.folder / NAME)
    host.cuts = 1  # the manifest's first answer
    told: list[Any] = []
    store = wait(open_store(f"{host.url}{NAME}{ending}"))
    folder = wait(store.open(Meter(lambda *step: told.append(step))))
    assert folder.manifest.name == NAME
    assert {phase for phase, _, _ in told} == {"download"}
    fetched = {path for path, _ in host.seen}
    assert {path.name for path in (host.folder / NAME).iterdir()} == {
        path.rpartition("/")[2] for path in fetched
    }
    host.seen.clear()
    wait(wait(open_store(f"{host.url}{NAME}{ending}")).open())
    assert {path for path, _ in host.seen} == {f"/{NAME}/manifest.json"}


def test_a_folder_is_loaded(host: Host, toy_model: Path, native: NativeRunner) -> None:
    shutil.copytree(toy_model, host.folder / NAME)
    right = greedy_of(toy_model)

    async def answered() -> list[int]:
        model = writer(await inpage.load(f"{host.url}{NAME}"))
        tokens = [token async for token in model.greedy(right.prompt, TOKENS)]
        model.unload()
        return tokens

    assert wait(answered()) == right.tokens


def test_a_folder_with_wrong_bytes(host: Host, toy_model: Path) -> None:
    shutil.copytree(toy_model, host.folder / NAME)
    graph = host.folder / NAME / "graph.json"
    graph.write_bytes(graph.read_bytes()[:-1] + b" ")
    with pytest.raises(ModelHashError, match=r"graph.json is not the file that its manifest.json"):
        wait(wait(open_store(f"{host.url}{NAME}")).open())


def test_the_command_tells_what_a_file_holds(host: Host) -> None:
    (host.folder / "x.gguf").write_bytes(small.small_file())
    shutil.copyfile(ROOT / "tests/pte/files/decoder_4w.pte", host.folder / "x.pte")
    for file in ("x.gguf", "x.pte"):
        command = [sys.executable, "-m", "inpage", "inspect", f"{host.url}{file}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "**It can be loaded.**" in done.stdout
