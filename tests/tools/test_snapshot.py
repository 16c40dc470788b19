"""The snapshot of Python: made when it must be, offered only beside the wheel that is in it."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.tools.small_site import make_site
from tools.site import Site
from tools.snapshot import LIBRARIES, MEMORY, SnapshotError, SnapshotStore, file_of


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Record the wheels that snapshots were made with; Node is not asked."""
    wheels: list[Path] = []

    def fill(store: SnapshotStore, folder: Path, wheel: Path) -> None:
        wheels.append(wheel)
        for name in (MEMORY, *map(file_of, LIBRARIES)):
            content = wheel.read_bytes() + name.encode()
            (folder / name).write_bytes(gzip.compress(content) if name == MEMORY else content)

    monkeypatch.setattr(SnapshotStore, "_fill", fill)
    return wheels


def test_a_site_without_one_says_nothing_of_it(site: Site) -> None:
    assert "snapshot" not in site.describe()


def test_it_is_made_once_and_offered(site: Site, made: list[Path]) -> None:
    wheel = site.wheels.current()
    snapshot = site.snapshots.make(wheel)
    assert site.snapshots.make(wheel) == site.snapshots.find(wheel) == snapshot
    assert made == [wheel]
    described: dict[str, Any] = site.describe()["snapshot"]
    addresses = [described["memory"], *(url for _, url in described["libraries"])]
    assert described["size"] == len(wheel.read_bytes() + MEMORY.encode())
    assert all(path.endswith(".so") for path, _ in described["libraries"])
    assert described["wheels"]["py_runtime"] == site.describe()["runtime"]
    assert set(addresses) <= set(site.urls())
    for address in addresses:
        resource = site.find(address)
        assert resource
        assert "immutable" in resource.cache_control
    assert site.find(addresses[1]).media_type == "application/wasm"  # type: ignore[union-attr]


def test_another_wheel_another_snapshot(site: Site, made: list[Path], tmp_path: Path) -> None:
    wheel = site.wheels.current()
    former = site.snapshots.make(wheel)
    other = tmp_path / "fedcba9876543210" / wheel.name
    other.parent.mkdir()
    other.write_bytes(b"another wheel")
    assert site.snapshots.find(other) is None
    kept = site.snapshots.make(other)
    assert site.snapshots.find(wheel) is None
    assert not former.folder.exists()
    assert site.snapshots.find(other) == kept


def test_another_pyodide_another_snapshot(site: Site, made: list[Path]) -> None:
    wheel = site.wheels.current()
    site.snapshots.make(wheel)
    (site.pyodide / "pyodide.mjs").write_bytes(b"// newer")
    assert SnapshotStore(site.pyodide, site.snapshots.folder).find(wheel) is None


def test_a_torn_record_is_no_snapshot(site: Site, made: list[Path]) -> None:
    wheel = site.wheels.current()
    site.snapshots.make(wheel)
    (site.snapshots.folder / ".current.json").write_text("{")
    assert site.snapshots.find(wheel) is None
    site.snapshots.make(wheel)
    assert len(made) == 2


def test_nodes_words_are_passed_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Node is given a Pyodide whose script is none; nothing is left behind."""
    wheel = site.wheels.current()
    monkeypatch.setattr("tools.snapshot.LIBRARIES", ())
    (site.pyodide / "numpy-1-any.whl").write_bytes(b"PK\x05\x06" + bytes(18))
    (site.pyodide / "pyodide.asm.mjs").touch()
    with pytest.raises(SnapshotError, match="Node said: Identifier"):
        site.snapshots.make(wheel)
    assert list(site.snapshots.folder.iterdir()) == []
