"""Loads in the page that are broken off, and what goes on where they ended."""

from typing import Any

import pytest

from tests.folder.conftest import CASES, LoadingPage
from tests.folder.faulty_site import CUT, ERROR, HANG, SHORT
from tests.folder.loading_checks import (
    MANIFEST,
    all_files,
    check_refused,
    kept_files,
    shard,
)

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


@pytest.mark.parametrize(("fault", "words"), [(CUT, "did not arrive"), (ERROR, "answered 500")])
def test_an_interrupted_load_goes_on_by_shard(
    fault: str, words: str, page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    page.site.faults[f"Toy/{shard(4)}"] = fault
    check_refused(page, page.load(), "network_error", shard(4), words)
    kept = kept_files(page, manifest)
    assert f"Toy/{manifest['graph']}" in kept
    assert any(f"Toy/{file}" in kept for file in manifest["weights"]), "three come at a time"
    assert f"Toy/{shard(4)}" not in kept
    (entry,) = page.run("stored")
    assert not entry["complete"]
    assert 0 < entry["bytes"] < manifest["size"]

    page.site.faults.clear()
    page.site.take_requests()
    result = page.load()
    check_loaded(result)
    missing = all_files(manifest) - kept
    assert page.site.take_requests() == MANIFEST | missing
    downloads = [total for phase, _, total in result["progress"] if phase == "download"]
    sizes = [manifest["files"][file.removeprefix("Toy/")]["size"] for file in missing]
    assert set(downloads) == {sum(sizes)}


def begun_entry(manifest: dict[str, Any], file: str) -> str:
    return f"begun-{manifest['files'][file]['sha256']}"


def begin_a_download(page: LoadingPage, manifest: dict[str, Any], file: str) -> int:
    """End a load while a file stands half-way; return the bytes that are there of it."""
    page.read_little_at_a_time()
    page.site.faults[f"Toy/{file}"] = HANG
    missing = manifest["files"][file]["size"] / 2 + 3 * 1024
    result = page.load(cancel_at=("download", 1 - missing / manifest["size"]))
    check_refused(page, result, "aborted", "cancelled")
    page.site.faults.clear()
    page.site.ranges.clear()
    return int(page.run("entries")[begun_entry(manifest, file)])


def test_a_download_goes_on_within_a_shard(
    page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    size = manifest["files"][shard(4)]["size"]
    begun = begin_a_download(page, manifest, shard(4))
    assert 0 < begun < size
    (entry,) = page.run("stored")
    assert not entry["complete"]
    result = page.load()
    check_loaded(result)
    assert page.site.ranges[f"Toy/{shard(4)}"] == f"bytes={begun}-"
    assert kept_files(page, manifest) == all_files(manifest)
    assert not [name for name in page.run("entries") if name.startswith("begun-")]
    assert result["notices"] == []


def test_an_answer_that_ends_early_goes_on_where_it_was(
    page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    """Check that one load does not request again what has arrived."""
    page.site.faults[f"Toy/{shard(4)}"] = SHORT
    page.site.ranges.clear()
    result = page.load()
    check_loaded(result)
    half = manifest["files"][shard(4)]["size"] // 2
    assert page.site.ranges[f"Toy/{shard(4)}"] == f"bytes={half - half % 16}-"
    assert kept_files(page, manifest) == all_files(manifest)
    assert result["notices"] == []


def test_a_host_without_ranges_sends_it_whole(
    page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    begin_a_download(page, manifest, shard(4))
    page.site.has_ranges = False
    check_loaded(page.load())
    page.site.has_ranges = True
    assert kept_files(page, manifest) == all_files(manifest)


def test_a_wrong_beginning_is_found_out(
    page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    """The hash shows it once the rest has come: then the whole file comes, unasked."""
    begin_a_download(page, manifest, shard(4))
    page.run("overwrite", entry=begun_entry(manifest, shard(4)), at=900, data=[1, 2, 3])
    check_loaded(page.load())
    assert kept_files(page, manifest) == all_files(manifest)
    page.reload()
    check_loaded(page.load())


def test_a_deleted_model_leaves_no_beginnings(page: LoadingPage, manifest: dict[str, Any]) -> None:
    begin_a_download(page, manifest, shard(4))
    assert page.run("delete", name="Toy") is None
    assert page.run("entries") == {}


def test_without_a_network_the_stored_model_loads(page: LoadingPage, check_loaded: Any) -> None:
    page.site.faults["Toy/manifest.json"] = ERROR
    check_refused(page, page.load(), "network_error", "answered 500")
    page.site.faults.clear()
    check_loaded(page.load())
    page.site.faults["Toy/manifest.json"] = ERROR
    check_loaded(page.load())


@pytest.mark.parametrize("phase", ["download", "shaders"])
def test_cancelling_breaks_off_and_leaves_the_gpu_empty(
    phase: str, page: LoadingPage, manifest: dict[str, Any], check_loaded: Any
) -> None:
    """A shard never ends: that the pipelines are complete all the same shows they do not wait."""
    page.site.faults[f"Toy/{shard(4)}"] = HANG
    tab = page.open_tab("gpu")
    buffers = tab.run(CASES, "gpu_buffers")
    cancel_at = (phase, 1.0 if phase == "shaders" else 0.5)
    result = tab.run(CASES, "load", where=page.address(), cancel_at=cancel_at)
    check_refused(page, result, "aborted", "cancelled")
    assert tab.run(CASES, "gpu_buffers") == buffers
    tab.page.close()
    kept = kept_files(page, manifest)
    assert kept

    page.site.faults.clear()
    page.site.take_requests()
    check_loaded(page.load())
    assert page.site.take_requests() == MANIFEST | (all_files(manifest) - kept)
    assert page.site.broken_off in ([], [f"Toy/{shard(4)}"])


def test_a_failing_graph_stops_the_download(page: LoadingPage, check_loaded: Any) -> None:
    page.site.faults[f"Toy/{shard(1)}"] = HANG
    result = page.run("load_with_a_broken_plan", where=page.address())
    check_refused(page, result, "graph_error", "broken on purpose")
    page.site.faults.clear()
    check_loaded(page.load())
