"""Model folders as written: whole or not there, in shards that safetensors itself can read."""

import errno
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from export import model_writer, new_folder
from export.errors import ExportError
from export.shard_plan import StoredTensor, plan_shards
from py_runtime import __version__
from py_runtime.base.dtypes import DTYPES, F16, F32, I8, I32, U8
from py_runtime.folder.on_disk import open_model_folder, verify_files
from py_runtime.folder.safetensors_header import parse_safetensors_header
from py_runtime.program.writer import ProgramWriter
from tests.folder.small_model import FACTS, FILES, GOLDENS, small_program, write_small
from tools.files import ROOT


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# The files ---------------------------------------------------------------------------------------


def test_the_layout_of_a_folder(tmp_path: Path) -> None:
    manifest = write_small(tmp_path / "small")
    shards = [f"weights-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    own = ["config.json", "goldens.safetensors", "graph.json", "manifest.json", "tokenizer.json"]
    assert names_in(tmp_path) == ["small"]
    assert names_in(tmp_path / "small") == [*own, *shards]
    assert (tmp_path / "small/config.json").read_bytes() == FILES["config.json"]
    assert (manifest.weights, manifest.goldens) == (tuple(shards), "goldens.safetensors")
    document = json.loads((tmp_path / "small/manifest.json").read_bytes())
    assert document["created_by"] == f"inpage {__version__}"
    assert document["requires"]["limits"]["max_buffer_size"] == 9600
    assert set(document["files"]) == {*own, *shards} - {"manifest.json"}
    assert verify_files(tmp_path / "small") == manifest


def test_the_library_reads_the_same_tensors(tmp_path: Path) -> None:
    manifest = write_small(tmp_path / "small")
    found: dict[str, np.ndarray] = {}
    for name in manifest.weights:
        assert (tmp_path / "small" / name).stat().st_size <= 4096
        found |= load_file(tmp_path / "small" / name)
    constants = small_program().constants
    pieces = [found.pop(f"table#{number}") for number in range(3)]
    assert [piece.shape for piece in pieces] == [(23, 40), (23, 40), (14, 40)]
    np.testing.assert_array_equal(np.concatenate(pieces), constants["table"])
    padding = {name: found.pop(name) for name in list(found) if name.startswith("__pad_")}
    assert {name: array.tolist() for name, array in padding.items()} == {"__pad_1": [0] * 4}
    assert found["indices"].dtype == found["mask"].dtype == np.int32
    np.testing.assert_array_equal(found.pop("indices"), constants["indices"])
    np.testing.assert_array_equal(found.pop("mask"), constants["mask"])
    assert not found
    goldens = load_file(tmp_path / "small/goldens.safetensors")
    for name, array in GOLDENS.items():
        assert goldens[name].dtype == array.dtype
        np.testing.assert_array_equal(goldens[name], array)


def test_packed_dtypes_and_odd_lengths(tmp_path: Path) -> None:
    writer = ProgramWriter()
    random = np.random.default_rng(1)
    for dtype in (U8, I8, F16, I32, F32):
        for dims in ((), (1,), (7,), (3, 5), (2, 1, 11)):
            data = random.integers(0, 100, dims).astype(dtype.host)
            writer.constant(f"{dtype.name} {dims}", np.asarray(data, dtype.host))
    manifest = model_writer.write_model(
        tmp_path / "odd", writer.program(), writer.constants, FACTS, {}, shard_size=1024
    )
    found: dict[str, np.ndarray] = {}
    for name in manifest.weights:
        found |= load_file(tmp_path / "odd" / name)
    assert len(manifest.weights) > 5
    for name, data in writer.constants.items():
        assert found[name].dtype == data.dtype
        np.testing.assert_array_equal(found[name], data)


def test_no_constants_no_shards(tmp_path: Path) -> None:
    writer = ProgramWriter()
    writer.output(writer.input("x", (1,), F32))
    manifest = model_writer.write_model(tmp_path / "none", writer.program(), {}, FACTS, {})
    assert (manifest.weights, manifest.goldens) == ((), None)
    assert names_in(tmp_path / "none") == ["graph.json", "manifest.json"]


TENSORS = st.lists(
    st.tuples(st.sampled_from(list(DTYPES.values())), st.lists(st.integers(1, 25), max_size=3)),
    max_size=20,
)


@settings(max_examples=200)
@given(TENSORS, st.integers(600, 5000))
def test_plans_keep_every_byte_within_the_limit(tensors: Any, shard_size: int) -> None:
    stored = [
        StoredTensor(f"tensor {at}", dtype, tuple(dims)) for at, (dtype, dims) in enumerate(tensors)
    ]
    covered: dict[str, list[tuple[int, int]]] = {tensor.name: [] for tensor in stored}
    for plan in plan_shards(stored, shard_size):
        assert plan.size <= shard_size
        parse_safetensors_header("shard", plan.header, plan.size)  # aligned, no holes
        for span in plan.spans:
            covered[span.tensor].append((span.begin, span.end))
    for tensor in stored:
        spans = covered[tensor.name]
        edges = [0, *(end for _, end in spans)]
        assert spans == list(pairwise(edges))
        assert edges[-1] == tensor.nbytes


def test_pieces_are_rows_where_a_row_fits() -> None:
    def dims_of_pieces(dims: tuple[int, ...]) -> list[list[int]]:
        found = []
        for plan in plan_shards([StoredTensor("t", I8, dims)], 1024):
            entries = parse_safetensors_header("shard", plan.header, plan.size)
            found += [list(entry.dims) for entry in entries]
        return found

    assert dims_of_pieces((5, 320)) == [[2, 320], [2, 320], [1, 320]]
    assert dims_of_pieces((3, 333)) == [[688], [311]]  # only 16 rows of 333 bytes are aligned
    assert dims_of_pieces((1, 1000)) == [[688], [312]]


def test_a_shard_without_room(tmp_path: Path) -> None:
    with pytest.raises(ExportError) as caught:
        write_small(tmp_path / "small", shard_size=300)
    assert str(caught.value) == (
        "shards of 300 bytes have no room for the tensor 'table'; choose a larger --shard-size"
    )
    assert names_in(tmp_path) == []


# One tensor at a time ----------------------------------------------------------------------------


def test_one_array_is_held_at_a_time(tmp_path: Path) -> None:
    alive: list[weakref.ref[np.ndarray]] = []
    counts = []

    def provider(data: np.ndarray) -> Callable[[], np.ndarray]:
        def make() -> np.ndarray:
            counts.append(sum(ref() is not None for ref in alive))
            array = data.copy()
            alive.append(weakref.ref(array))
            return array

        return make

    constants = {f"w{at}": np.full((30, 40), at, np.float32) for at in range(6)}
    writer = ProgramWriter()
    for name, data in constants.items():
        writer.constant(name, data)
    model_writer.write_model(
        tmp_path / "lazy",
        writer.program(),
        {name: provider(data) for name, data in constants.items()},
        FACTS,
        {},
        shard_size=2048,  # each tensor in pieces, made once all the same
    )
    assert counts == [0] * 6
    verify_files(tmp_path / "lazy")


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    manifest = write_small(
        tmp_path / "small", progress=lambda done, total: seen.append((done, total))
    )
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {total for _, total in seen} == {manifest.size}
    assert seen[-1][0] == manifest.size


# What cannot be written --------------------------------------------------------------------------


def small_constants(**changes: Any) -> dict[str, Any]:
    return {**small_program().constants, **changes}


def cannot_read() -> np.ndarray:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"constants": {}}, "the graph's constants table, indices, mask were not given"),
        (
            {"constants": small_constants(table=np.zeros((40, 60), np.float32))},
            "the constant 'table' is float32 [40, 60], but the graph's is f32 [60, 40]",
        ),
        (
            {"constants": small_constants(table=np.zeros((60, 40)))},
            "the constant 'table' is float64 [60, 40], but the graph's is f32 [60, 40]",
        ),
        (
            {"constants": small_constants(indices=np.array([0, -(2**31) - 1, 2]))},
            "the constant 'indices' holds -2147483649, which does not fit the GPU's int32",
        ),
        (
            {"constants": small_constants(mask=cannot_read)},
            "the constant 'mask' cannot be read: [Errno 5] Input/output error",
        ),
        (
            {"files": {"../config.json": b""}},
            "a model folder cannot hold a further file named '../config.json'",
        ),
        (
            {"files": {"manifest.json": b""}},
            "a model folder cannot hold a further file named 'manifest.json'",
        ),
        (
            {"files": {"weights-00001-of-00003.safetensors": b""}},
            "a model folder cannot hold a further file named 'weights-00001-of-00003.safetensors'",
        ),
        (
            {"goldens": {"g": np.zeros(2)}},
            "a model folder cannot hold the golden 'g' of float64",
        ),
    ],
)
def test_what_is_given_must_fit(options: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError) as caught:
        write_small(tmp_path / "small", **options)
    assert str(caught.value) == text
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("at_write", [0, 3, 7])
def test_a_full_disk_is_one_line(
    at_write: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write with this number fails, and leaves nothing."""
    write = model_writer._HashedFile.write
    writes: list[int] = []

    def failing(self: Any, data: Any) -> None:
        if len(writes) == at_write:
            raise OSError(errno.ENOSPC, "No space left on device")
        writes.append(len(data))
        write(self, data)

    monkeypatch.setattr(model_writer._HashedFile, "write", failing)
    with pytest.raises(ExportError) as caught:
        write_small(tmp_path / "small")
    monkeypatch.undo()
    needed = write_small(tmp_path / "other").size
    assert str(caught.value) == (
        f"the disk is full: {tmp_path / 'small'} needs {needed} bytes; free some space or choose "
        "another folder"
    )
    assert names_in(tmp_path) == ["other"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ExportError) as caught:
        write_small(tmp_path / "file/small")
    folder = tmp_path / "file/small"
    assert str(caught.value) == (
        f"{folder} cannot be written: Not a directory; choose another folder"
    )


# Whole or not there ------------------------------------------------------------------------------


def test_a_former_model_is_replaced_at_the_very_end(tmp_path: Path) -> None:
    write_small(tmp_path / "small", files={"old.json": b"{}"})

    def while_writing(done: int, total: int) -> None:
        assert "old.json" in open_model_folder(tmp_path / "small").manifest.files

    write_small(tmp_path / "small", progress=while_writing)
    assert names_in(tmp_path) == ["small"]
    assert "old.json" not in names_in(tmp_path / "small")
    verify_files(tmp_path / "small")


def test_a_failed_export_leaves_the_former_model(tmp_path: Path) -> None:
    manifest = write_small(tmp_path / "small")
    with pytest.raises(ExportError):
        write_small(tmp_path / "small", constants=small_constants(mask=cannot_read))
    assert verify_files(tmp_path / "small") == manifest
    assert names_in(tmp_path) == ["small"]


def test_an_interrupted_swap_puts_the_former_model_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write_small(tmp_path / "small")
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if ".partial-" in self.name:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(KeyboardInterrupt):
        write_small(tmp_path / "small")
    assert verify_files(tmp_path / "small") == manifest
    assert names_in(tmp_path) == ["small"]


@pytest.mark.parametrize("content", [None, b"{}", b"{", b'{"format": "other"}'])
def test_a_folder_of_something_else_is_refused(content: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.txt").write_bytes(b"years of work")
    if content is not None:
        (tmp_path / "thesis/manifest.json").write_bytes(content)
    with pytest.raises(ExportError) as caught:
        write_small(tmp_path / "thesis")
    assert str(caught.value) == (
        f"{tmp_path / 'thesis'} is there already and is not a model folder; choose another folder "
        "or remove it"
    )
    assert (tmp_path / "thesis/chapter.txt").read_bytes() == b"years of work"
    assert names_in(tmp_path) == ["thesis"]


def test_a_file_in_the_way_is_refused_and_an_empty_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(ExportError, match="is there already and is not a model folder"):
        write_small(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    write_small(tmp_path / "empty")
    verify_files(tmp_path / "empty")


def test_a_link_to_a_model_stays_a_link(tmp_path: Path) -> None:
    write_small(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    write_small(tmp_path / "link", files={"new.json": b"{}"})
    assert (tmp_path / "link").is_symlink()
    assert "new.json" in names_in(tmp_path / "real")


CRASH = """
import os, sys
from pathlib import Path
from tests.folder.small_model import write_small
write_small(Path(sys.argv[1]), progress=lambda done, total: done > total / 2 and os._exit(9))
"""


def test_a_crash_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    crashed = subprocess.run([sys.executable, "-c", CRASH, str(folder)], cwd=ROOT, check=False)
    assert crashed.returncode == 9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".small.partial-")
    assert "manifest.json" not in names_in(left)
    assert names_in(left), "the crash came in the middle"
    write_small(folder)
    assert names_in(tmp_path) == ["small"]
    verify_files(folder)


def test_leftovers(tmp_path: Path) -> None:
    """The leftovers of living processes stay; a former model that nothing replaced comes back."""
    own, dead, alive = os.getpid(), 2**40, os.getppid()
    for process in (own, dead, alive):
        (tmp_path / f".small.partial-{process}").mkdir()
    (tmp_path / ".smaller.partial-7").mkdir()
    write_small(tmp_path / f".small.former-{dead}", files={"old.json": b"{}"})
    with pytest.raises(ExportError):
        write_small(tmp_path / "small", constants=small_constants(mask=cannot_read))
    assert "old.json" in open_model_folder(tmp_path / "small").manifest.files
    write_small(tmp_path / "small")
    assert names_in(tmp_path) == [f".small.partial-{alive}", ".smaller.partial-7", "small"]


def test_a_process_of_someone_else_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(process: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert new_folder._runs_elsewhere(1)
