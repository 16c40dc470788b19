"""The tests that `make check` runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.quick import imports_heavy
from tools.files import ROOT

GIVEN = """
import pytest

def test_light(): pass
def test_lazy():
    with pytest.raises(ImportError):
        import torch
@pytest.mark.long
def test_long(): assert False
@pytest.mark.browser
def test_in_a_browser(): assert False
@pytest.fixture
def native(): assert False
@pytest.fixture
def device(native): assert False
def test_on_a_gpu(device): assert False
"""


@pytest.mark.parametrize(
    ("file", "is_heavy"),
    [
        ("golden.py", True),  # itself
        ("ops/test_ops.py", True),  # through others
        ("export/test_quantisers.py", True),
        ("toy_model.py", False),  # only once it is called
        ("tokens/test_parts.py", False),
        ("graph/test_graph.py", False),
    ],
)
def test_files_that_import_torch_are_found(file: str, is_heavy: bool) -> None:
    assert imports_heavy(ROOT / "tests" / file) is is_heavy


def test_what_asks_for_much_is_left_out_and_torch_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "test_given.py").write_text(GIVEN)
    (tmp_path / "test_heavy.py").write_text("import torch\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.quick", "-c", "pyproject.toml"]
    done = subprocess.run([*command, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "2 passed, 3 deselected" in done.stdout
