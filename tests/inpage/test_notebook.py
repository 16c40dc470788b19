"""The bar that notebooks show while a model loads, with an IPython that only remembers."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import inpage
from py_runtime.base.errors import InpageError
from tests.runners import NativeRunner, wait
from tests.toy_model import NAME

pytestmark = pytest.mark.thorough


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what a notebook was asked to draw, one after the other."""
    found: list[str] = []

    def draw(shown: Any, **options: Any) -> SimpleNamespace:
        found.append(shown._repr_html_())
        return SimpleNamespace(update=draw)

    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel="a notebook's")  # type: ignore[attr-defined]
    display.display = draw  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return found


def test_a_load_draws_a_bar(drawn: list[str], native: NativeRunner, toy_model: Path) -> None:
    model = wait(inpage.load(str(toy_model)))
    model.unload()
    assert f'<strong>{NAME}</strong> <progress value="0.000" max="1">' in drawn[0]
    assert len(drawn) > 3
    assert 'value="1.000"' in drawn[-1]
    assert "is loaded" in drawn[-1]


def test_whoever_watches_gets_no_bar(
    drawn: list[str], native: NativeRunner, toy_model: Path
) -> None:
    phases = set()
    model = wait(inpage.load(str(toy_model), progress=lambda phase, *_: phases.add(phase)))
    model.unload()
    assert "upload" in phases
    assert drawn == []


def test_a_load_that_fails_says_so(drawn: list[str], native: NativeRunner, tmp_path: Path) -> None:
    with pytest.raises(InpageError):
        wait(inpage.load(f"{tmp_path}/<img src=x>"))
    assert "was not loaded" in drawn[-1]
    assert "<img" not in drawn[-1]


def test_a_terminal_gets_no_bar(
    drawn: list[str], native: NativeRunner, toy_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())
    wait(inpage.load(str(toy_model))).unload()
    assert drawn == []
