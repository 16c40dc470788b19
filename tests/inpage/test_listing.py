"""`inpage.models()` natively; in the browser, tests/app/test_python.py and tests/reach have it."""

import shutil
from pathlib import Path

import pytest

import inpage
from py_runtime.base.errors import InpageError
from py_runtime.folder.manifest import MANIFEST
from tests.encoder.gguf_files import small_checkpoint
from tests.runners import wait
from tests.toy_model import NAME


def test_a_folder_of_models(toy_model: Path, tmp_path: Path) -> None:
    shutil.copytree(toy_model, tmp_path / "exported")
    for broken in ("Broken", ".hidden"):
        (tmp_path / broken).mkdir()
        (tmp_path / broken / MANIFEST).write_text("{}")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "model.pte").write_bytes(b"12345")
    for name, data in small_checkpoint().items():
        path = tmp_path / "encoder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name in ("lone.gguf", "two-00001-of-00002.gguf", "two-00002-of-00002.gguf"):
        (tmp_path / name).write_bytes(b"123")
    (tmp_path / "half-00001-of-00002.gguf").write_bytes(b"123")
    (tmp_path / "notes.txt").write_text("not a model")

    found = {entry.name: entry for entry in wait(inpage.models(str(tmp_path)))}
    assert found.keys() == {NAME, "encoder", "lone", "program", "two"}
    assert all(entry.stored for entry in found.values())
    assert [found[name].size for name in ("lone", "program", "two")] == [3, 5, 6]
    assert found["two"] == inpage.ModelEntry(
        "two", str(tmp_path / "two-00001-of-00002.gguf"), 6, stored=True
    )
    assert found[NAME].where == str(tmp_path / "exported")


def test_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert wait(inpage.models()) == []
    with pytest.raises(InpageError, match="no folder of models at nowhere"):
        wait(inpage.models("nowhere"))


def test_what_is_public_is_there() -> None:
    for name in inpage.__all__:
        assert getattr(inpage, name)
    with pytest.raises(AttributeError, match="no attribute 'engine'"):
        _ = inpage.engine
