"""The wheel that the page installs."""

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from py_runtime import __version__
from py_runtime.cpu.kernel_table import KERNELS_FOLDER, MODULES, TABLE
from tools.files import ROOT
from tools.wheel import INPUT_FILES, INPUT_FOLDERS, WheelError, WheelStore, run_builder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return WheelStore(ROOT, tmp_path_factory.mktemp("wheels")).current()


def copy_of_sources(folder: Path) -> Path:
    for name in INPUT_FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in INPUT_FILES:
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def test_it_holds_the_runtime_and_the_shaders_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"inpage-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        shaders = list((ROOT / "shaders").rglob("*.wgsl"))
        assert shaders
        for shader in shaders:
            inside = f"py_runtime/{shader.relative_to(ROOT).as_posix()}"
            assert archive.read(inside) == shader.read_bytes()
        for script in [ROOT / "web/bridge.js", *(ROOT / "web/bridge").glob("*.js")]:
            inside = f"py_runtime/bridge/js/{script.relative_to(ROOT / 'web').as_posix()}"
            assert archive.read(inside) == script.read_bytes()
    assert {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "py_runtime").rglob("*.py")
    } <= names
    assert {"inpage/py.typed", "py_runtime/py.typed"} <= names  # type checkers look for them
    metadata = f"inpage-{__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"inpage", "py_runtime", metadata}
    assert not any(name.endswith(".pyc") for name in names)


@pytest.mark.built
def test_it_holds_the_compiled_kernels_instead_of_their_sources(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in (*MODULES, TABLE):
            compiled = (KERNELS_FOLDER / name).read_bytes()
            assert archive.read(f"py_runtime/cpu/kernels/{name}") == compiled
        assert not any(name.endswith((".c", ".h")) for name in archive.namelist())


def test_equal_sources_give_equal_bytes(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    project = copy_of_sources(tmp_path)
    for number, path in enumerate(project.rglob("*")):
        os.utime(path, (number, 1_000_000_000 + number))
    again = WheelStore(project, tmp_path / "build").current()
    assert again.read_bytes() == wheel.read_bytes()
    assert again.parent.name == wheel.parent.name


def test_it_is_built_again_only_when_the_sources_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = copy_of_sources(tmp_path)
    builds = []

    def counting(project: Path, folder: Path) -> Path:
        builds.append(project)
        return run_builder(project, folder)

    monkeypatch.setattr("tools.wheel.run_builder", counting)
    first = WheelStore(project, tmp_path / "build").current()
    cached = project / "py_runtime" / "__pycache__"
    cached.mkdir()
    (cached / "errors.cpython-311.pyc").write_bytes(b"")
    assert WheelStore(project, tmp_path / "build").current() == first
    assert len(builds) == 1

    (project / "shaders" / "new.wgsl").write_text("fn main() {}")
    second = WheelStore(project, tmp_path / "build").current()
    assert len(builds) == 2
    assert second != first
    assert list((tmp_path / "build").glob("*/*.whl")) == [second]

    second.unlink()
    assert WheelStore(project, tmp_path / "build").current().is_file()
    assert len(builds) == 3


def test_a_failing_build_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    project = copy_of_sources(tmp_path)
    (project / "pyproject.toml").write_text("[project]\nname = 3\n")
    with pytest.raises(WheelError, match="the py_runtime wheel could not be built: ") as error:
        WheelStore(project, tmp_path / "build").current()
    assert "\n" not in str(error.value)
    assert list((tmp_path / "build").iterdir()) == []
