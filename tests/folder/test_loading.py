"""Loading in the page: what is downloaded, checked, stored, shared, and left behind by failures.

Loads that are broken off: tests/folder/test_interrupted_loading.py.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.folder.conftest import CASES, LoadingPage, rewrite
from tests.folder.faulty_site import FLIP
from tests.folder.loading_checks import (
    MANIFEST,
    all_files,
    check_refused,
    entry_of,
    kept_files,
    shard,
)

pytestmark = pytest.mark.browser

# Storing ------------------------------------------------------------------------------------------


def test_a_second_visit_downloads_the_manifest_alone(
    page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    first = page.load()
    check_loaded(first)
    assert first["notices"] == []
    assert page.site.take_requests() == MANIFEST | all_files(manifest)
    page.reload()
    again = page.load()
    check_loaded(again)
    assert page.site.take_requests() == MANIFEST
    assert {phase for phase, _, _ in again["progress"]} == {"upload", "shaders"}
    assert (
        page.run("read_goldens", where=page.address())
        == manifest["files"]["goldens.safetensors"]["size"]
    )
    assert page.site.take_requests() == MANIFEST
    assert page.run("stored") == [
        {"name": "Toy", "url": page.address(), "bytes": manifest["size"], "complete": True}
    ]


def test_progress_tells_bytes_and_pipelines(page: LoadingPage, manifest: dict[str, Any]) -> None:
    weights = sum(manifest["files"][file]["size"] for file in manifest["weights"])
    told = page.load()["progress"]
    last = {phase: (done, total) for phase, done, total in told}
    assert last["download"] == (manifest["size"], manifest["size"])
    assert last["upload"] == (weights, weights)
    assert last["shaders"][0] == last["shaders"][1] > 0
    for phase in last:
        done = [row[1] for row in told if row[0] == phase]
        assert done == sorted(done), f"{phase} went backwards"


def test_a_changed_model_brings_what_changed_and_drops_what_it_replaced(
    page: LoadingPage, models: Path, manifest: dict[str, Any], check_loaded: Any
) -> None:
    check_loaded(page.load())
    page.site.take_requests()
    changing = [models / "Toy" / file for file in ("config.json", "manifest.json")]
    before = {path: path.read_bytes() for path in changing}
    rewrite(models / "Toy", "config.json", b"\n")
    try:
        check_loaded(page.load())
    finally:
        for path, data in before.items():
            path.write_bytes(data)
    assert page.site.take_requests() == MANIFEST | {"Toy/config.json"}
    entries = [name for name in page.run("entries") if not name.startswith("checked-")]
    assert entry_of(manifest, "config.json") not in entries
    assert len(entries) == len(manifest["files"]) + 1  # the manifest's


def test_models_share_files_until_the_last_is_deleted(
    page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    check_loaded(page.load())
    page.site.take_requests()
    check_loaded(page.load("Twin"))
    assert page.site.take_requests() == {"Twin/manifest.json", "Twin/config.json"}
    assert [entry["complete"] for entry in page.run("stored")] == [True, True]

    assert page.run("delete", name="Toy") is None
    assert [entry["name"] for entry in page.run("stored")] == ["Twin"]
    assert entry_of(manifest, "config.json") not in page.run("entries")
    check_loaded(page.load("Twin"))
    assert page.site.take_requests() == {"Twin/manifest.json"}

    assert page.run("delete", name=page.address("Twin")) is None
    assert page.run("entries") == {}
    assert page.run("delete", name="Twin") == "no model 'Twin' is stored in this browser"


def test_two_tabs_at_once(page: LoadingPage, manifest: dict[str, Any], check_loaded: Any) -> None:
    tab = page.open_tab()
    script = "where => { globalThis.loading = inpage.python(where); }"
    code = "import tests.folder.loading_cases as cases\nresult = await cases.load(device, {!r})\n"
    tab.run(CASES, "entries")  # ships the module
    tab.page.evaluate(script, code.replace("{!r}", repr(page.address())))
    check_loaded(page.load())
    tab.page.evaluate("globalThis.loading.then(() => null)")
    assert tab.python("[result['error'], result['notices']]") == [None, []]
    tab.page.close()
    assert kept_files(page, manifest) == all_files(manifest)


def test_a_file_that_another_tab_is_keeping_is_left_to_it(
    page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    locked = entry_of(manifest, shard(5))
    result = page.run("load_while_locked", where=page.address(), entry=locked)
    check_loaded(result)
    assert result["notices"] == []
    left = [name for name in page.run("entries") if name.startswith(("begun-", "partial-"))]
    assert left == []
    check_loaded(page.load())
    assert kept_files(page, manifest) == all_files(manifest)


@pytest.mark.parametrize("before", ["opening", "moving"])
def test_a_file_that_another_tab_has_just_kept_is_left_to_it(
    page: LoadingPage, check_loaded: Any, before: str
) -> None:
    result = page.run("load_while_taken_away", where=page.address(), before=before)
    check_loaded(result)
    assert result["notices"] == []


def later(case: str) -> Any:
    """Mark a case of the same test thorough."""
    return pytest.param(case, marks=pytest.mark.thorough)


# Wrong bytes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [shard(3), *map(later, ("tokenizer.json", "goldens.safetensors"))])
def test_a_wrong_byte_from_the_network_is_refused(
    file: str, page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    page.site.faults[f"Toy/{file}"] = FLIP
    check_refused(page, page.load(), "model_hash", f"{file} is not the file that was exported")
    assert f"Toy/{file}" not in kept_files(page, manifest)
    page.site.faults.clear()
    check_loaded(page.load())


DAMAGE = {
    "weights": (shard(3), 800),
    "the graph": ("graph.json", 100),
    "a longer file": (shard(7), 20_000),
}


@pytest.mark.parametrize("place", ["weights", *map(later, ("the graph", "a longer file"))])
def test_a_damaged_copy_is_downloaded_again(
    place: str, page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    file, at = DAMAGE[place]
    check_loaded(page.load())
    page.site.take_requests()
    page.run("overwrite", entry=entry_of(manifest, file), at=at, data=[1, 2, 3])
    result = page.load()
    check_loaded(result)
    assert page.site.take_requests() == MANIFEST | {f"Toy/{file}"}
    assert page.run("entries")[entry_of(manifest, file)] == manifest["files"][file]["size"]
    uploads = [(done, total) for phase, done, total in result["progress"] if phase == "upload"]
    assert uploads[-1][0] == uploads[-1][1]
    check_loaded(page.load())
    assert page.site.take_requests() == MANIFEST


def test_a_stored_file_is_hashed_once_unless_it_changes(
    page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    def hashed_files() -> int:
        result, hashed = page.run("load_and_count_hashes", where=page.address())
        check_loaded(result)
        assert isinstance(hashed, int)
        return hashed

    assert hashed_files() == len(manifest["files"])
    assert hashed_files() == 0
    file = shard(7)
    page.site.take_requests()
    page.run("overwrite", entry=entry_of(manifest, file), at=500, data=[1, 2, 3])
    assert hashed_files() == 2, "once as it was stored, once as it came again"
    assert page.site.take_requests() == MANIFEST | {f"Toy/{file}"}
    assert hashed_files() == 0
    page.run("delete", name="Toy")
    assert page.run("entries") == {}


def test_a_damaged_manifest_in_storage_is_no_obstacle(page: LoadingPage, check_loaded: Any) -> None:
    check_loaded(page.load())
    (entry,) = [name for name in page.run("entries") if name.startswith("model-")]
    page.run("overwrite", entry=entry, at=0, data=[1])
    assert page.run("stored") == []
    check_loaded(page.load())
    assert [model["complete"] for model in page.run("stored")] == [True]


# Storage that refuses -----------------------------------------------------------------------------


def test_too_little_room_is_seen_before(
    page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    result = page.run("load_with_little_room", where=page.address(), free=100_000)
    check_loaded(result)
    (notice,) = result["notices"]
    assert notice["kind"] == "storage"
    assert (notice["needed_bytes"], notice["free_bytes"]) == (manifest["size"], 100_000)
    needed = f"{manifest['size'] / 1000:.0f} kB"
    assert f"Toy needs {needed} of this browser's storage, which has 100 kB left" in notice["text"]
    assert page.run("entries") == {}


def test_what_is_stored_needs_no_room(page: LoadingPage, check_loaded: Any) -> None:
    check_loaded(page.load())
    page.site.take_requests()
    result = page.run("load_with_little_room", where=page.address(), free=0)
    check_loaded(result)
    assert result["notices"] == []
    assert page.site.take_requests() == MANIFEST


@pytest.mark.parametrize(
    ("load", "limit"),
    [
        ("load_until_full", {"writes": 0}),
        ("load_until_full", {"writes": 9}),
        ("load_while_nothing_opens", {}),
    ],
)
def test_storage_that_fills_up_on_the_way(
    load: str,
    limit: dict[str, int],
    page: LoadingPage,
    manifest: dict[str, Any],
    check_loaded: Any,
) -> None:
    result = page.run(load, where=page.address(), **limit)
    check_loaded(result)
    (notice,) = result["notices"]
    assert notice["kind"] == "storage"
    assert "no space on purpose" in notice["text"]
    assert "stays in memory" in notice["text"]
    entries = page.run("entries")
    assert not [name for name in entries if name.startswith(("partial-", "begun-"))]
    kept = kept_files(page, manifest)
    assert len(kept) <= max(0, limit.get("writes", 0) - 1)
    page.site.take_requests()
    check_loaded(page.load())
    assert page.site.take_requests() == MANIFEST | (all_files(manifest) - kept)


def test_no_storage_at_all(page: LoadingPage, check_loaded: Any) -> None:
    result, stored = page.run("load_without_storage", where=page.address())
    check_loaded(result)
    (notice,) = result["notices"]
    assert "does not let the page keep files" in notice["text"]
    assert stored == []
    assert page.run("entries") == {}


# On the GPU ---------------------------------------------------------------------------------------


def test_a_model_is_rebuilt_from_storage(page: LoadingPage, check_loaded: Any) -> None:
    check_loaded(page.load())
    page.site.take_requests()
    before, after, more_buffers, phases = page.run("rebuild", where=page.address())
    np.testing.assert_array_equal(before, after)
    assert more_buffers == 0
    assert phases == ["shaders", "upload"]
    assert page.site.take_requests() == MANIFEST


def test_a_gpu_without_the_memory_is_left_usable(page: LoadingPage, check_loaded: Any) -> None:
    tab = page.open_tab("gpu")
    buffers = tab.run(CASES, "gpu_buffers")
    result = tab.run(CASES, "load_without_gpu_memory", where=page.address())
    check_refused(page, result, "gpu_out_of_memory", "of memory, more than this device has")
    assert tab.run(CASES, "gpu_buffers") == buffers
    check_loaded(tab.run(CASES, "load", where=page.address()))
    tab.page.close()
