"""Bytes on their way from files to buffers, at every boundary: parts, gaps, heads, kept rows."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from py_runtime.base.dtypes import BOOL, F32, I64
from py_runtime.base.errors import GraphError, InpageError
from py_runtime.base.model_errors import ModelFileError
from py_runtime.base.progress import DOWNLOAD, UPLOAD, Meter
from py_runtime.program.writer import ProgramWriter
from py_runtime.weights import byte_source, ranges, uploads
from py_runtime.weights.byte_source import (
    FileSource,
    MissingFileError,
    Pieces,
    RemoteSource,
    cut_pieces,
    is_there,
)
from py_runtime.weights.constants import ArrayConstants, Place
from py_runtime.weights.kept_rows import AT_ONCE, KeptRows
from py_runtime.weights.ranges import RangeConstants, StoredRange
from py_runtime.weights.uploads import UploadMeter, UploadQueue, UploadRange
from tests.pte.memory_source import MemorySource
from tests.runners import wait

BUFFER = cast(Any, "buffer")


class FakeDevice:
    """Buffers of 100 bytes, by name."""

    def __init__(self) -> None:
        self.buffers: dict[str, bytearray] = {}
        self.waits = 0

    def write_buffer(self, buffer: Any, data: np.ndarray, offset: int = 0) -> None:
        held = self.buffers.setdefault(buffer, bytearray(100))
        held[offset : offset + data.nbytes] = data.tobytes()
        assert len(held) == 100, "within the buffer"

    def submit(self, plan: None, counts: None, writes: Sequence[Any]) -> None:
        for write in writes:
            self.write_buffer(write.buffer, write.data, write.offset)

    async def finish_writes(self) -> None:
        self.waits += 1


@pytest.mark.parametrize(
    ("place", "start", "nbytes", "found"),
    [
        (Place(BUFFER), 0, 10, (0, 10, 0)),
        (Place(BUFFER), 7, 10, (0, 10, 7)),
        (Place(BUFFER, 32), 7, 10, (0, 10, 39)),
        (Place(BUFFER, 32, start=4), 0, 10, (4, 6, 32)),
        (Place(BUFFER, 32, start=4), 7, 10, (0, 10, 35)),
        (Place(BUFFER, 32, start=10), 0, 10, None),
        (Place(BUFFER, 32, start=9), 0, 10, (9, 1, 32)),
        (Place(BUFFER, 32, start=4, nbytes=3), 0, 10, (4, 3, 32)),
        (Place(BUFFER, 32, start=4, nbytes=3), 6, 10, (0, 1, 34)),
        (Place(BUFFER, 32, start=4, nbytes=3), 7, 10, None),
        (Place(BUFFER, 32, start=4, nbytes=30), 0, 10, (4, 6, 32)),
    ],
)
def test_a_place_takes_a_part(place: Place, start: int, nbytes: int, found: Any) -> None:
    assert place.of(start, nbytes) == found


@pytest.mark.parametrize(
    ("position", "length", "at", "first", "last"),
    [
        (20, 10, 40, 20, 30),
        (15, 10, 40, 20, 25),
        (25, 10, 45, 25, 30),
        (10, 40, 40, 20, 30),
        (22, 3, 42, 22, 25),
    ],
)
def test_a_block_of_a_file_gives_its_share(
    position: int, length: int, at: int, first: int, last: int
) -> None:
    block = np.arange(position, position + length, dtype=np.uint8)
    write = UploadRange(20, 10, BUFFER, 40).write(position, block)
    assert write is not None
    assert (write.offset, write.data.tolist()) == (at, [*range(first, last)])
    wide = UploadRange(20, 10, BUFFER, 40, widen=True).write(position, block)
    assert wide is not None
    assert wide.offset == 40 + 4 * (first - 20)
    assert wide.data.dtype == np.int32
    assert wide.data.tolist() == [*range(first, last)]


@pytest.mark.parametrize(("position", "length"), [(10, 10), (30, 5), (0, 1), (20, 0)])
def test_a_block_beside_it_gives_nothing(position: int, length: int) -> None:
    assert UploadRange(20, 10, BUFFER, 40).write(position, np.zeros(length, np.uint8)) is None


def test_uploads_wait_once_many_bytes_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "UPLOAD_AHEAD", 20)
    device = FakeDevice()
    queue = UploadQueue(cast(Any, device))
    waited = []
    for _ in range(5):  # of ten bytes: the third is one too many
        wait(queue.add(0, np.zeros(10, np.uint8), [UploadRange(0, 10, BUFFER, 0)]))
        waited.append(device.waits)
    assert waited == [0, 0, 1, 1, 1]
    wait(queue.finish())
    assert device.waits == 2


def test_a_remote_file_comes_down_as_it_goes_up() -> None:
    for is_remote, phases in ((True, [DOWNLOAD, UPLOAD]), (False, [UPLOAD])):
        told: list[Any] = []
        source = SimpleNamespace(name="f", is_remote=is_remote)
        meter = UploadMeter(cast(Any, source), 10, Meter(lambda *row, told=told: told.append(row)))
        meter.add(4)
        meter.add(6)
        assert [row for row in told if row[1] == 10] == [(phase, 10, 10) for phase in phases]


def two_constants() -> ProgramWriter:
    writer = ProgramWriter()
    writer.declare_constant("a", (5,), F32)
    writer.declare_constant("b", (3,), BOOL)
    return writer


DATA = bytes(range(100))


@pytest.mark.parametrize("gap", [0, 1, 16, 17])
def test_ranges_of_a_file_reach_their_buffers(gap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly neighbours are read in one go, others in two; bools lie in a byte each."""
    monkeypatch.setattr(ranges, "JOINED_GAP", 16)
    source = Opened(DATA, "f")
    told: list[Any] = []
    found = {"a": StoredRange(source, 10, 20), "b": StoredRange(source, 30 + gap, 3)}
    constants = RangeConstants(found)
    constants.check(two_constants().program())
    device = FakeDevice()
    places = {
        "a": [Place(BUFFER, 8, nbytes=12), Place(cast(Any, "other"), 4, start=12)],
        "b": [Place(cast(Any, "bools"), 40)],
    }
    meter = Meter(lambda *row: told.append(row))
    wait(constants.upload(cast(Any, device), places, meter))
    assert device.buffers["buffer"] == bytes(8) + DATA[10:22] + bytes(80)
    assert device.buffers["other"] == bytes(4) + DATA[22:30] + bytes(88)
    bools = np.frombuffer(bytes(device.buffers["bools"][40:52]), np.int32)
    assert bools.tolist() == list(DATA[30 + gap : 33 + gap])
    runs = 1 if gap <= 16 else 2
    assert source.opened == runs
    total = 23 + (gap if runs == 1 else 0)
    assert told[-1] == (UPLOAD, total, total)


class Opened(MemorySource):
    opened = 0

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        self.opened += 1
        async with aclosing(super().pieces(cuts)) as pieces:
            async for piece in pieces:
                yield piece


def test_ranges_that_are_no_constants() -> None:
    source = MemorySource(DATA, "f")
    good = {"a": StoredRange(source, 0, 20), "b": StoredRange(source, 20, 12)}
    RangeConstants(good).check(two_constants().program())  # bools as the GPU has them, too
    for change in (
        {"a": StoredRange(source, 0, 19)},
        {"a": StoredRange(source, 0, 5)},
        {"b": StoredRange(source, 0, 4)},
    ):
        with pytest.raises(GraphError, match="bytes for it"):
            RangeConstants(good | change).check(two_constants().program())
    with pytest.raises(GraphError, match="needs the constant 'b', which is missing"):
        RangeConstants({"a": good["a"]}).check(two_constants().program())
    overlapping = RangeConstants(good | {"b": StoredRange(source, 19, 12)})
    overlapping.check(two_constants().program())
    places = {name: [Place(BUFFER)] for name in good}
    with pytest.raises(ModelFileError, match="f has constants that overlap"):
        wait(overlapping.upload(cast(Any, FakeDevice()), places, Meter()))


def test_arrays_become_what_the_gpu_holds() -> None:
    writer = ProgramWriter()
    writer.declare_constant("i", (3,), I64)
    constants = ArrayConstants({"i": np.array([1, -2, 3], np.int64)})
    constants.check(writer.program())
    device, told = FakeDevice(), []
    places = {"i": [Place(BUFFER, 16), Place(cast(Any, "other"), 0, start=4, nbytes=4)]}
    wait(constants.upload(cast(Any, device), places, Meter(lambda *row: told.append(row))))
    assert np.frombuffer(bytes(device.buffers["buffer"][16:28]), np.int32).tolist() == [1, -2, 3]
    assert np.frombuffer(bytes(device.buffers["other"][:8]), np.int32).tolist() == [-2, 0]
    assert told[-1] == (UPLOAD, 24, 24)
    for wrong in (np.zeros(2, np.int64), np.zeros(3, np.float32), np.zeros((3, 1), np.int64)):
        with pytest.raises(GraphError, match="its constant 'i' is"):
            ArrayConstants({"i": wrong}).check(writer.program())
    ArrayConstants({"i": np.zeros(3, np.int32)}).check(writer.program())
    large = ArrayConstants({"i": np.array([0, 2**31, 0])})
    large.check(writer.program())
    with pytest.raises(InpageError, match="the constant 'i'"):
        wait(large.upload(cast(Any, device), places, Meter()))


# Files --------------------------------------------------------------------------------------------


def test_a_file_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_source, "PIECE_BYTES", 8)
    (tmp_path / "f").write_bytes(DATA)
    source = FileSource(tmp_path / "f")
    assert (source.name, source.is_remote, wait(source.size())) == ("f", False, 100)
    assert wait(source.read(90, 10)) == DATA[90:]
    with pytest.raises(ModelFileError, match="f ends after 100 bytes"):
        wait(source.read(91, 10))
    found = wait(collected(source.pieces([5, 20, 24])))
    assert found == [(5, DATA[5:13]), (13, DATA[13:20]), (20, DATA[20:24])]
    missing = FileSource(tmp_path / "g")
    assert [wait(is_there(each)) for each in (source, missing)] == [True, False]
    with pytest.raises(MissingFileError):
        wait(missing.read(0, 1))


async def collected(pieces: Pieces) -> list[tuple[int, bytes]]:
    return [(position, piece.tobytes()) async for position, piece in pieces]


class Blocks:
    """Blocks of at most so many bytes, from some place on."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data, self._most = data, most
        self.closed = 0

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        count = min(self._most, len(memory), len(self._data))
        memory[:count] = np.frombuffer(self._data[:count], np.uint8)
        self._data = self._data[count:]
        return memory[:count]

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("most", [1, 7, 8, 100])
def test_blocks_are_cut_into_pieces(most: int) -> None:
    blocks = Blocks(DATA[3:], most)
    cuts = [10, 18, 19, 30]
    found = wait(collected(cut_pieces("f", cast(Any, blocks), 3, cuts)))
    assert b"".join(piece for _, piece in found) == DATA[10:30]
    assert {10, 18, 19} <= {position for position, _ in found}
    assert all(DATA[at : at + len(piece)] == piece for at, piece in found)
    assert blocks.closed == 1
    short = Blocks(DATA[3:25], most)
    with pytest.raises(ModelFileError, match="f ends after 25 bytes"):
        wait(collected(cut_pieces("f", cast(Any, short), 3, cuts)))
    assert short.closed == 1


class Remote(RemoteSource):
    """A remote file whose host tells the size if the test wants it to."""

    def __init__(self, data: bytes, tells: bool) -> None:
        super().__init__("https://x.org/a/b%20c.gguf?x=y")
        self._data, self._tells = data, tells
        self.asked: list[Any] = []

    async def _open_head(self) -> tuple[Any, int | None]:
        self.asked.append("head")
        return Blocks(self._data, 16), len(self._data) if self._tells else None

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        self.asked.append((cuts[0], cuts[-1]))
        blocks = cast(Any, Blocks(self._data[cuts[0] :], 16))
        async with aclosing(cut_pieces(self.name, blocks, cuts[0], cuts)) as pieces:
            async for piece in pieces:
                yield piece


@pytest.mark.parametrize("tells", [True, False])
def test_the_head_of_a_remote_file_is_kept(tells: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_source, "HEAD_BYTES", 32)
    source = Remote(DATA, tells)
    assert (source.name, source.is_remote) == ("b c.gguf", True)
    assert wait(source.read(30, 2)) == DATA[30:32]
    assert wait(source.size()) == 100
    assert source.asked == ["head"]
    assert wait(source.read(30, 3)) == DATA[30:33]
    assert source.asked == ["head", (30, 33)]
    assert wait(Remote(DATA[:20], tells).read(0, 20)) == DATA[:20]


class Rows(KeptRows):
    def __init__(self) -> None:
        super().__init__(columns=2)
        self.asked: list[int] = []
        self.under_way = self.most = 0

    async def read_row(self, token: int) -> bytes:
        self.asked.append(token)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        return bytes([token, token + 1])

    def dense(self, rows: Sequence[bytes]) -> np.ndarray:
        return np.array([list(row) for row in rows], np.float32)


def test_rows_are_kept_and_not_too_many_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("py_runtime.weights.kept_rows.KEPT_ROWS", 3)
    rows = Rows()
    found = wait(rows.read([5, 7, 5]))
    assert found.tolist() == [[[5, 6], [7, 8], [5, 6]]]
    assert rows.asked == [5, 7]
    wait(rows.read([9]))
    wait(rows.read([5]))  # is used last now
    wait(rows.read([11]))  # and 7 has gone
    assert rows.asked == [5, 7, 9, 11]
    wait(rows.read([5, 9]))
    assert rows.asked == [5, 7, 9, 11]
    wait(rows.read([7]))
    assert rows.asked == [5, 7, 9, 11, 7]
    many = Rows()
    wait(many.read(list(range(AT_ONCE + 1))))
    assert many.most == AT_ONCE
