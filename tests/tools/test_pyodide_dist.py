"""Collecting Pyodide, offline: every source is a stand-in."""

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tools import pyodide_dist
from tools.pyodide_dist import (
    CORE_FILES,
    VERSION,
    DistError,
    Folder,
    PackageIndex,
    SourceError,
    Wheel,
    cut_lock,
)

LOCK = "pyodide-lock.json"
WHEELS = {"numpy.whl": b"numpy's wheel", "helper.whl": b"what numpy depends on"}
OTHER_HELPER = b"the helper's wheel, built by others"

collect = partial(pyodide_dist.collect, packages=["numpy"], replaced={})


class Shelf:
    """A source that holds some files, and counts how often it is asked."""

    def __init__(self, name: str, files: dict[str, bytes]) -> None:
        self.name = name
        self.files = files
        self.asked: list[list[str]] = []

    def fetch(self, wheels: Sequence[Wheel]) -> dict[str, bytes]:
        names = [wheel.file_name for wheel in wheels]
        self.asked.append(names)
        return {name: self.files[name] for name in names if name in self.files}


class Unreachable:
    name = "a host"

    def fetch(self, wheels: Sequence[Wheel]) -> dict[str, bytes]:
        raise SourceError("no route to it")


def lock() -> dict[str, Any]:
    def entry(file_name: str, *depends: str) -> dict[str, Any]:
        sha256 = hashlib.sha256(WHEELS[file_name]).hexdigest()
        return {"file_name": file_name, "sha256": sha256, "depends": list(depends)}

    packages = {
        "numpy": entry("numpy.whl", "helper"),
        "helper": entry("helper.whl"),
        "unwanted": entry("helper.whl"),
    }
    return {"info": {"python": "3.14.0"}, "packages": packages}


@pytest.fixture
def npm(tmp_path: Path) -> Path:
    folder = tmp_path / "npm"
    folder.mkdir()
    for name in CORE_FILES:
        (folder / name).write_text(f"this is {name}")
    (folder / LOCK).write_text(json.dumps(lock()))
    (folder / "package.json").write_text(json.dumps({"version": VERSION}))
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def files_below(folder: Path) -> set[str]:
    paths = folder.rglob("*")
    return {path.relative_to(folder).as_posix() for path in paths if path.is_file()}


def test_core_and_wheels_are_collected(npm: Path, out: Path, cache: Path) -> None:
    collect(npm_package=npm, out=out, cache=cache, sources=[Shelf("shelf", WHEELS)])
    assert files_below(out) == {*CORE_FILES, *WHEELS}
    for name in set(CORE_FILES) - {LOCK}:
        assert (out / name).read_bytes() == (npm / name).read_bytes()
    for name, data in WHEELS.items():
        assert (out / name).read_bytes() == data
        assert (cache / "pyodide" / name).read_bytes() == data


def test_the_pages_lock_names_what_is_there(npm: Path, out: Path, cache: Path) -> None:
    collect(npm_package=npm, out=out, cache=cache, sources=[Shelf("shelf", WHEELS)])
    original, cut = lock(), json.loads((out / LOCK).read_text())
    assert cut["info"] == original["info"]
    assert cut["packages"] == {name: original["packages"][name] for name in ("numpy", "helper")}


def test_a_replaced_wheel_is_checked_by_its_own_hash(npm: Path, out: Path, cache: Path) -> None:
    sha256 = hashlib.sha256(OTHER_HELPER).hexdigest()
    sources = [Shelf("as Pyodide has it", WHEELS), Shelf("other", {"helper.whl": OTHER_HELPER})]
    replaced = {"helper": {"sha256": sha256}}
    collect(npm_package=npm, out=out, cache=cache, sources=sources, replaced=replaced)
    assert (out / "helper.whl").read_bytes() == OTHER_HELPER
    assert json.loads((out / LOCK).read_text())["packages"]["helper"]["sha256"] == sha256


def test_a_source_is_asked_only_for_what_is_still_missing(
    npm: Path, out: Path, cache: Path
) -> None:
    first = Shelf("first", {"numpy.whl": WHEELS["numpy.whl"]})
    second, third = Shelf("second", WHEELS), Shelf("third", WHEELS)
    collect(npm_package=npm, out=out, cache=cache, sources=[Unreachable(), first, second, third])
    assert sorted(first.asked[0]) == ["helper.whl", "numpy.whl"]
    assert second.asked == [["helper.whl"]]
    assert third.asked == []


def test_a_second_run_and_a_second_clone_fetch_nothing(
    npm: Path, out: Path, cache: Path, tmp_path: Path
) -> None:
    collect(npm_package=npm, out=out, cache=cache, sources=[Shelf("shelf", WHEELS)])
    written = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    collect(npm_package=npm, out=out, cache=cache, sources=[])
    assert written == {path: path.stat().st_mtime_ns for path in out.iterdir()}
    collect(npm_package=npm, out=tmp_path / "second clone", cache=cache, sources=[])
    assert files_below(tmp_path / "second clone") == files_below(out)


def test_a_wrong_hash_is_refused_and_nothing_is_written(npm: Path, out: Path, cache: Path) -> None:
    tampered = Shelf("a mirror", {**WHEELS, "numpy.whl": b"something else"})
    with pytest.raises(DistError) as error:
        collect(npm_package=npm, out=out, cache=cache, sources=[tampered])
    assert str(error.value) == (
        "numpy.whl cannot be fetched as Pyodide's lock names it. "
        f"{out}: no numpy.whl. {out}: no helper.whl. "
        f"{cache}/pyodide: no numpy.whl. {cache}/pyodide: no helper.whl. "
        "a mirror: wrong sha256 of numpy.whl"
    )
    assert files_below(out) == files_below(cache) == set()


def test_a_wrong_hash_is_passed_over_when_another_source_is_right(
    npm: Path, out: Path, cache: Path
) -> None:
    tampered = Shelf("a mirror", dict.fromkeys(WHEELS, b"something else"))
    collect(npm_package=npm, out=out, cache=cache, sources=[tampered, Shelf("good", WHEELS)])
    assert (out / "numpy.whl").read_bytes() == WHEELS["numpy.whl"]


def test_no_source_is_one_line_that_says_what_was_tried(npm: Path, out: Path, cache: Path) -> None:
    with pytest.raises(DistError) as error:
        collect(npm_package=npm, out=out, cache=cache, sources=[Unreachable(), Shelf("shelf", {})])
    text = str(error.value)
    assert "numpy.whl" in text
    assert "a host: no route to it" in text
    assert "shelf: no numpy.whl" in text
    assert "\n" not in text
    assert files_below(out) == files_below(cache) == set()


@pytest.mark.parametrize("place", ["out", "cache/pyodide"])
def test_a_corrupt_file_is_fetched_again(
    npm: Path, out: Path, cache: Path, tmp_path: Path, place: str
) -> None:
    collect(npm_package=npm, out=out, cache=cache, sources=[Shelf("shelf", WHEELS)])
    for folder in (out, cache / "pyodide"):
        (folder / "numpy.whl").unlink()
    (tmp_path / place / "numpy.whl").write_bytes(WHEELS["numpy.whl"][:-1])
    shelf = Shelf("shelf", WHEELS)
    collect(npm_package=npm, out=out, cache=cache, sources=[shelf])
    assert shelf.asked == [["numpy.whl"]]
    assert (out / "numpy.whl").read_bytes() == WHEELS["numpy.whl"]
    assert (cache / "pyodide" / "numpy.whl").read_bytes() == WHEELS["numpy.whl"]


def test_a_failed_write_leaves_no_part_of_a_file(
    npm: Path, out: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", disk_full)
    with pytest.raises(OSError, match="No space left"):
        collect(npm_package=npm, out=out, cache=cache, sources=[Shelf("shelf", WHEELS)])
    assert files_below(out) == files_below(cache) == set()


def test_files_of_another_version_go(npm: Path, out: Path, cache: Path) -> None:
    out.mkdir()
    (out / "numpy-old.whl").write_bytes(b"from before")
    collect(npm_package=npm, out=out, cache=cache, sources=[Shelf("shelf", WHEELS)])
    assert files_below(out) == {*CORE_FILES, *WHEELS}


def test_the_npm_package_must_be_whole_and_of_the_pinned_version(npm: Path, out: Path) -> None:
    (npm / "package.json").write_text('{"version": "1.0"}')
    with pytest.raises(DistError, match=f"holds Pyodide 1.0, not {VERSION}. Run: npm ci"):
        collect(npm_package=npm, out=out, sources=[])
    (npm / "python_stdlib.zip").unlink()
    with pytest.raises(DistError, match=r"not complete in .*Run: npm ci"):
        collect(npm_package=npm, out=out, sources=[])


def test_an_unknown_package_is_named() -> None:
    with pytest.raises(DistError, match="has no package 'nonesuch' in its lock file"):
        cut_lock(lock(), ["nonesuch"], {})


def test_a_folder_gives_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "numpy.whl").write_bytes(b"data")
    wanted = [Wheel("numpy.whl", ""), Wheel("helper.whl", "")]
    assert Folder(tmp_path).fetch(wanted) == {"numpy.whl": b"data"}


def test_the_package_index_is_asked_for_pure_wheels_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def pip_download(requirement: str, folder: Path) -> Path:
        asked.append(requirement)
        archive = folder / "some_thing-1.2-py3-none-any.whl"
        archive.write_bytes(b"data")
        return archive

    monkeypatch.setattr(pyodide_dist, "pip_download", pip_download)
    wanted = [
        Wheel("numpy-2-cp314-cp314-pyemscripten_wasm32.whl", ""),
        Wheel("some_thing-1.2-py3-none-any.whl", ""),
    ]
    assert PackageIndex().fetch(wanted) == {"some_thing-1.2-py3-none-any.whl": b"data"}
    assert asked == ["some_thing==1.2"]
