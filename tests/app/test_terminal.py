"""`python -m py_runtime chat MODEL`: answers on standard output, all else on standard error."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.files import ROOT


def chat(*arguments: str, prompt: str = "the quick brown fox") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "py_runtime", "chat", *arguments]
    return subprocess.run(command, input=prompt, capture_output=True, text=True, cwd=ROOT)


def test_a_pipe_gets_the_answer_alone(toy_model: Path) -> None:
    options = ("--temperature", "0", "--max-tokens", "6", "--system", "Be brief.")
    done = chat(str(toy_model), *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n")
    assert len(done.stdout) > 1
    assert "loading" not in done.stdout
    assert "tokens" not in done.stdout
    rows = done.stderr.splitlines()
    assert rows[0].startswith(f"[loading {toy_model} on ")
    assert "6 tokens" in rows[-1] or "tokens/s" in rows[-1]


def test_what_cannot_be_answered(toy_model: Path) -> None:
    done = chat(str(toy_model), "--temperature", "9")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "temperature must be a number from 0 to 2" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("folder", ["nowhere", "docs"])
def test_a_bad_folder_is_one_line(folder: str) -> None:
    done = chat(folder)
    assert done.returncode == 1
    assert done.stdout == ""
    *told, last = done.stderr.splitlines()
    assert last.startswith(f"{folder}: ")
    assert all(row.startswith("[loading ") for row in told)


def test_no_model_is_a_matter_of_usage() -> None:
    done = chat()
    assert done.returncode == 2
    assert "MODEL" in done.stderr
