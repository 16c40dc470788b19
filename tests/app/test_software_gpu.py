"""The search for a browser, and for the software GPU beside it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from py_runtime.app import software_gpu


@pytest.mark.parametrize(
    ("returncode", "is_there", "is_found"),
    [(0, True, True), (0, False, False), (1, True, False), (1, False, False)],
)
def test_the_browser_of_playwright(
    returncode: int, is_there: bool, is_found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "chrome"
    if is_there:
        program.touch()

    def run(*args: Any, **named: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(args, returncode, f"{program}\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert software_gpu.playwrights_own() == (program if is_found else None)


def test_what_the_user_chose_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "browser"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHOSEN", raising=False)
    assert software_gpu.chosen_or_on_path("CHOSEN", ("none", "browser")) == program
    assert software_gpu.chosen_or_on_path("CHOSEN", ("none",)) is None
    monkeypatch.setenv("CHOSEN", "none")
    assert software_gpu.chosen_or_on_path("CHOSEN", ("browser",)) is None
    monkeypatch.setenv("CHOSEN", str(program))
    assert software_gpu.chosen_or_on_path("CHOSEN", ()) == program
