"""Tests that a marker selects, and files that it leaves out whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import file_markers
from tools.files import ROOT

pytestmark = pytest.mark.long  # pytest within pytest

CONFTEST = """
from tests.tiers import Tiers

def pytest_configure(config):
    config.pluginmanager.register(Tiers(config.option.markexpr))
"""
TESTS = """
import pytest

@pytest.fixture
def native(): return 1
@pytest.fixture
def device(native): return 1
@pytest.fixture
def cpu(): return 1

def test_light(): pass
def test_gpu(device): pass
def test_cpu(device, cpu): pass
@pytest.mark.thorough
def test_thorough(): pass
@pytest.mark.browser
@pytest.mark.thorough_in_page
def test_page(): pass
@pytest.mark.thorough_in_page
def test_native(): pass
def test_torch_is_missing_where_it_is_left_out(request):
    if "not torch" in request.config.option.markexpr:
        with pytest.raises(ImportError):
            import torch
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_given.py").write_text(TESTS)
    heavy = "import pytest\npytestmark = [pytest.mark.torch]\nimport not_there\n"
    (tmp_path / "test_heavy.py").write_text(heavy)
    return tmp_path


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("not gpu and not torch", "6 passed, 1 deselected"),
        ("not thorough and not torch", "5 passed, 2 deselected"),
        ("thorough and not torch", "2 passed, 5 deselected"),
        ("not thorough", "No module named 'not_there'"),
    ],
)
def test_markers_select(folder: Path, expression: str, told: str) -> None:
    assert told in output_of(folder, expression)


def output_of(folder: Path, expression: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-c", "pyproject.toml", "-m", expression]
    # Playwright and others would be imported each time; pyproject.toml has an option of one.
    alone = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "pytest_timeout",
    }
    done = subprocess.run([*command, folder], cwd=ROOT, env=alone, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_a_file_without_the_word_is_not_imported_for_thorough_tests(folder: Path) -> None:
    (folder / "test_light.py").write_text("import not_there_either\n")
    assert "2 passed, 5 deselected" in output_of(folder, "thorough and not torch")
    (folder / "test_light.py").write_text(
        "import pytest\n@getattr(pytest.mark, 'thor' 'ough')\ndef test(): pass\n"
    )
    assert "must stand in its own file" in output_of(folder, "not thorough and not torch")


def test_the_markers_of_a_file_are_read_without_importing_it(folder: Path) -> None:
    assert file_markers(folder / "test_heavy.py") == {"torch"}
    assert file_markers(folder / "test_given.py") == set()
