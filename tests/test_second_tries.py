"""Tests of tests: those of a short list are tried once more, in another browser."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_tries import TRIED_TWICE
from tools.files import ROOT

MAX_TRIED_TWICE = 6  # may only shrink

CONFTEST = """
import pytest
from tests.second_tries import SecondTries

started = []

def pytest_configure(config):
    config.addinivalue_line("markers", "browser: in the browser")
    config.pluginmanager.register(SecondTries(("test_toy.py::test_fails_at_first",)))

@pytest.fixture(scope="session")
def browser():
    started.append("browser")
    yield len(started)
    raise OSError("it has crashed")

@pytest.fixture(scope="module")
def page(browser):
    return f"page of browser {browser}"
"""
TESTS = """
import pytest

pages = []

@pytest.mark.browser
def test_before(page):
    pages.append(page)

@pytest.mark.browser
def test_fails_at_first(page):
    pages.append(page)
    assert len(pages) == 3

@pytest.mark.browser
def test_after(page):
    assert [*pages, page] == [f"page of browser {number}" for number in (1, 1, 2, 2)]

@pytest.mark.browser
def test_fails_always(page):
    assert False

def test_fails_without_a_browser():
    assert False

def seconds_of(request):
    mark = request.node.get_closest_marker("timeout")
    return mark and mark.args[0]

@pytest.mark.browser
@pytest.mark.timeout(7)
def test_has_its_own_time(request):
    assert seconds_of(request) == 7

@pytest.mark.browser
def test_has_less_time(request):
    assert seconds_of(request) == 300

def test_has_the_usual_time_without_a_browser(request):
    assert seconds_of(request) is None
"""


@pytest.mark.long
def test_a_second_try_has_a_browser_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_toy.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:playwright", "-p", "no:cacheprovider"]
    told = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(tmp_path), "-rfER", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    ).stdout
    summary = told.partition("rerun test summary info")[2]
    assert "RERUN test_toy.py::test_fails_at_first" in summary, told
    assert "FAILED test_toy.py::test_fails_always" in summary
    assert "FAILED test_toy.py::test_fails_without_a_browser" in summary
    assert "2 failed, 6 passed, 1 error, 1 rerun" in summary, "the last browser's end is an error"


def test_the_list_of_second_tries_is_short_and_names_files() -> None:
    assert len(TRIED_TWICE) <= MAX_TRIED_TWICE
    assert all((ROOT / file).is_file() for file in TRIED_TWICE)
