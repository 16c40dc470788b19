"""Constants that stream out of files: in pieces, past gaps, widened; files that end early."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GraphError
from py_runtime.base.model_errors import ModelFileError
from py_runtime.base.progress import Meter
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter
from py_runtime.weights.byte_source import PIECE_BYTES, FileSource, Pieces
from py_runtime.weights.ranges import JOINED_GAP, RangeConstants, StoredRange
from tests.runners import NativeRunner, wait

COUNT = PIECE_BYTES // 4 + 100  # more than one piece


def chosen() -> ProgramWriter:
    """Write where(mask, a, b), of three constants: [COUNT]."""
    writer = ProgramWriter()
    mask = writer.constant("mask", np.zeros(COUNT, np.bool_))
    a = writer.constant("a", np.zeros(COUNT, np.float32))
    b = writer.constant("b", np.zeros(COUNT, np.float32))
    out = writer.tensor((COUNT,), F32)
    writer.op("aten.where.self", mask, a, b, out)
    writer.output(out)
    return writer


def load(native: NativeRunner, ranges: dict[str, StoredRange], tell: Any = None) -> Graph:
    program = chosen().program()
    return wait(Graph.load(native.device, program, RangeConstants(ranges), Meter(tell)))


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        "mask": rng.random(COUNT) < 0.5,
        "a": rng.standard_normal(COUNT, np.float32),
        "b": rng.standard_normal(COUNT, np.float32),
    }


def write(
    path: Path, arrays: dict[str, np.ndarray], gaps: dict[str, int]
) -> dict[str, StoredRange]:
    """Write the arrays one after the other, each after a gap."""
    source, data, ranges = FileSource(path), b"", {}
    for name, array in arrays.items():
        data += b"\xff" * gaps.get(name, 0)
        ranges[name] = StoredRange(source, len(data), array.nbytes)
        data += array.tobytes()
    path.write_bytes(data)
    return ranges


@pytest.mark.parametrize("gap", [0, 3, 1 << 20])
def test_constants_arrive_whole(
    gap: int, native: NativeRunner, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """Next to each other, at odd places, or so far apart that they are read one by one."""
    told = []
    ranges = write(tmp_path / "data", arrays, {"a": gap, "b": gap})
    graph = load(native, ranges, lambda phase, done, total: told.append((phase, done, total)))
    (out,) = wait(graph.run([]))
    graph.unload()
    np.testing.assert_array_equal(out, np.where(arrays["mask"], arrays["a"], arrays["b"]))
    done = [done for phase, done, _ in told if phase == "upload"]
    assert done == sorted(done)
    assert ("upload", done[-1], done[-1]) in told


@pytest.mark.parametrize(("beyond", "passes"), [(0, 1), (1, 3)])
def test_a_small_gap_is_read_rather_than_asked_for_anew(
    beyond: int,
    passes: int,
    native: NativeRunner,
    arrays: dict[str, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = []
    pieces = FileSource.pieces

    def counted(source: FileSource, cuts: Sequence[int]) -> Pieces:
        started.append(cuts)
        return pieces(source, cuts)

    monkeypatch.setattr(FileSource, "pieces", counted)
    gap = JOINED_GAP + beyond
    load(native, write(tmp_path / "data", arrays, {"a": gap, "b": gap})).unload()
    assert len(started) == passes


def test_a_file_that_ends_early_is_named(
    native: NativeRunner, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    path = tmp_path / "short.pte"
    ranges = write(path, arrays, {})
    path.write_bytes(path.read_bytes()[:-5])
    buffers = native.device.counters.buffers_alive
    with pytest.raises(ModelFileError, match=r"short.pte ends after \d+ bytes"):
        load(native, ranges)
    assert native.device.counters.buffers_alive == buffers


def test_ranges_that_overlap_are_refused(
    native: NativeRunner, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    ranges = write(tmp_path / "data", arrays, {})
    b = ranges["b"]
    ranges["b"] = StoredRange(b.source, b.offset - 2, b.nbytes)
    with pytest.raises(ModelFileError, match="overlap"):
        load(native, ranges)


def test_sizes_must_fit(
    native: NativeRunner, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    ranges = write(tmp_path / "data", arrays, {})
    with pytest.raises(GraphError, match="needs the constant 'b', which is missing"):
        load(native, {name: found for name, found in ranges.items() if name != "b"})
    ranges["b"] = StoredRange(ranges["b"].source, 0, 8)
    with pytest.raises(GraphError, match="data has 8 bytes for it"):
        load(native, ranges)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"nothing.pte cannot be read: No such file"):
        wait(FileSource(tmp_path / "nothing.pte").size())
