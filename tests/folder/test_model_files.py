"""Model folders on a disk: opened by their headers, mapped, checked and run."""

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import InpageError
from py_runtime.base.model_errors import DAMAGED, ModelFileError, ModelHashError
from py_runtime.folder.on_disk import (
    ConstantFiles,
    DiskFolder,
    PiecedTensor,
    open_model_folder,
    verify_files,
)
from py_runtime.graph import Graph
from tests.folder.small_model import FILES, GOLDENS, small_program, small_result, write_small
from tests.runners import NativeRunner, wait

SHARD = "weights-00002-of-00003.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_small(tmp_path / "small")
    return tmp_path / "small"


def test_constants_are_views_until_pieces_are_joined(folder: Path) -> None:
    constants = ConstantFiles(folder, open_model_folder(folder).tensors)
    wanted = small_program().constants
    assert list(constants) == list(wanted)
    assert len(constants) == 3
    table = constants["table"]
    assert isinstance(table, PiecedTensor)
    assert table.shape == (60, 40)
    assert table.dtype == np.float32
    assert not np.asarray(constants["mask"]).flags.writeable
    for name, array in wanted.items():
        np.testing.assert_array_equal(np.asarray(constants[name]), array)
    assert np.asarray(table, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="only by copying"):
        np.asarray(table, copy=False)
    with pytest.raises(KeyError):
        constants["other"]


def test_goldens_keep_their_dtypes(folder: Path) -> None:
    goldens = ConstantFiles(folder, open_model_folder(folder).goldens)
    for name, array in GOLDENS.items():
        assert goldens[name].dtype == array.dtype
        np.testing.assert_array_equal(goldens[name], array)


def test_a_graph_runs_from_a_folder(folder: Path, native: NativeRunner) -> None:
    x = np.random.default_rng(2).standard_normal((3, 40), np.float32)

    async def load_and_run() -> np.ndarray:
        model = open_model_folder(folder)
        graph = await Graph.load(native.device, model.program, ConstantFiles(folder, model.tensors))
        (out,) = await graph.run([x])
        graph.unload()
        return out

    np.testing.assert_array_equal(wait(load_and_run()), small_result(x))


def test_a_store_reads_whole_files_as_exported(folder: Path) -> None:
    async def read(name: str) -> bytes:
        store = DiskFolder(folder)
        return await store.read(await store.open(), name)

    assert wait(read("config.json")) == FILES["config.json"]
    model = open_model_folder(folder)
    (folder / "config.json").write_bytes(b'{"hidden_size": 41}')
    with pytest.raises(ModelHashError, match=r"^config\.json is not the file that was exported"):
        wait(read("config.json"))
    (folder / "config.json").unlink()
    with pytest.raises(ModelFileError, match=r"config\.json cannot be read: No such file"):
        wait(DiskFolder(folder).read(model, "config.json"))


def check_fault(folder: Path, kind: type[InpageError], text: str) -> None:
    """verify_files finds it, and opening does as well where the headers or sizes show it."""
    with pytest.raises(InpageError) as caught:
        verify_files(folder)
    assert (type(caught.value), str(caught.value)) == (kind, text)


def test_no_model(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        text = (
            f"there is no model in {folder}: it has no manifest.json; create one with inpage export"
        )
        check_fault(folder, ModelFileError, text)
        with pytest.raises(ModelFileError):
            open_model_folder(folder)


def test_a_missing_file(folder: Path) -> None:
    (folder / "config.json").unlink()
    text = f"{folder / 'config.json'} cannot be read: No such file or directory; {DAMAGED}"
    check_fault(folder, ModelFileError, text)
    with pytest.raises(ModelFileError, match=r"config\.json cannot be read"):
        open_model_folder(folder)


def test_a_file_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_file = Path.open

    def refusing(self: Path, *arguments: Any) -> Any:
        if self.name == SHARD:
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_file(self, *arguments)

    monkeypatch.setattr(Path, "open", refusing)
    text = f"{folder / SHARD} cannot be read: Permission denied; {DAMAGED}"
    check_fault(folder, ModelFileError, text)
    with pytest.raises(ModelFileError) as caught:
        open_model_folder(folder)
    assert str(caught.value) == text


def test_a_file_that_goes_away_after_opening(folder: Path) -> None:
    constants = ConstantFiles(folder, open_model_folder(folder).tensors)
    (folder / SHARD).unlink()
    with pytest.raises(ModelFileError, match=f"{SHARD} cannot be read: No such file or directory"):
        constants["table"]
    constants["mask"]


def test_a_truncated_file(folder: Path) -> None:
    data = (folder / SHARD).read_bytes()
    (folder / SHARD).write_bytes(data[:-16])
    size = len(data)
    text = f"{SHARD} has {size - 16} bytes, but the manifest says {size}; {DAMAGED}"
    check_fault(folder, ModelFileError, text)
    with pytest.raises(ModelFileError):
        open_model_folder(folder)


def test_a_flipped_bit_in_the_weights(folder: Path) -> None:
    data = bytearray((folder / SHARD).read_bytes())
    data[-1] ^= 1
    (folder / SHARD).write_bytes(data)
    open_model_folder(folder)  # the headers are as they were
    with pytest.raises(ModelHashError) as caught:
        verify_files(folder)
    assert str(caught.value).startswith(
        f"{SHARD} is not the file that was exported: its sha256 is "
    )
