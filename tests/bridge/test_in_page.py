"""Streams, stored files and locks of the browser's, and its faults as errors of our own."""

import json

import numpy as np
import pytest

from tests.runners import PageRunner
from tools.files import ROOT

pytestmark = pytest.mark.browser

CASES = "tests.bridge.in_runtime"
SHADER = json.dumps({"label": "toy", "messages": [[2, 1, "unresolved"]]})


@pytest.mark.parametrize(
    ("name", "message", "kind", "text"),
    [
        ("no-adapter", "none", "GpuUnavailableError", "none"),
        ("out-of-memory", "too large", "GpuOutOfMemoryError", "too large"),
        ("lost", "gone", "GpuDeviceLostError", "gone"),
        ("missing", "nothing there", "NotFoundError", "nothing there"),
        ("storage", "cannot be read", "StorageError", "cannot be read"),
        ("shader", SHADER, "ShaderError", "line 2, column 1: unresolved\n    b"),
        ("TypeError", "a bug", "JsException", "a bug"),
    ],
)
def test_faults_become_our_own_and_bugs_stay(
    in_page: PageRunner, name: str, message: str, kind: str, text: str
) -> None:
    found = in_page.run(CASES, "fault", name=name, message=message)
    assert found[0] == kind
    assert text in found[1]


def test_a_listing_that_was_broken_off_takes_no_later_answer_away(in_page: PageRunner) -> None:
    """Pyodide would: its error, when it tells a future that was cancelled, stays for the next."""
    assert in_page.run(CASES, "after_a_listing_was_broken_off") == "an answer"


def test_an_answer_that_nobody_waits_for_is_taken_back(in_page: PageRunner) -> None:
    assert in_page.run(CASES, "late_answers") == ["an answer"]


def test_a_file_arrives_in_blocks(in_page: PageRunner) -> None:
    wanted = np.fromfile(ROOT / "web" / "api.js", np.uint8)
    url = f"{in_page.page.url}api.js"
    found = in_page.run(CASES, "streamed", url=url, memory_bytes=1000)
    assert found["type"].startswith("text/javascript")
    np.testing.assert_array_equal(found["whole"], wanted)
    np.testing.assert_array_equal(found["first"], wanted[:10])
    assert max(found["sizes"]) <= 1000
    assert all(size == 1000 or size % 16 == 0 for size in found["sizes"][:-1])


def test_what_is_not_there_is_named(in_page: PageRunner) -> None:
    url = f"{in_page.page.url}nothing.js"
    assert in_page.run(CASES, "missing", url=url) == ["NotFoundError", f"{url} answered 404"]


def test_a_stored_file_has_one_writer_and_is_read_whole_or_in_part(in_page: PageRunner) -> None:
    found = in_page.run(CASES, "stored", data=np.arange(12, dtype=np.uint8))
    assert found["busy"]
    assert found["sizes"] == [0, 12]
    assert ["test-kept", 12] in found["listed"]
    assert found["whole"] == [*range(12)]
    assert found["part"] == [*range(3, 9)]
    assert found["gone"].startswith("NotFoundError: ")


def test_a_lock_goes_to_the_next_who_still_waits(in_page: PageRunner) -> None:
    assert in_page.run(CASES, "locked") == [
        "the first has it",
        "the first leaves",
        "the third has it",
    ]
