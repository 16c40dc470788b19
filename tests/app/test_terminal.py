"""`inpage chat MODEL`: answers on standard output, all else on standard error."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inpage.command import error_line
from py_runtime.base.defaults import DEVICE_VARIABLE
from py_runtime.base.errors import InpageError
from tools.files import ROOT


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands compute on the CPU, which has no shaders to compile."""
    monkeypatch.setenv(DEVICE_VARIABLE, "cpu")


def chat(*arguments: str, prompt: str = "the quick brown fox") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inpage", "chat", *arguments]
    return subprocess.run(command, input=prompt, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.thorough)])
def test_a_pipe_gets_the_answer_alone(
    device: str, toy_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, device)
    options = ("--temperature", "0", "--max-tokens", "6", "--system", "Be brief.")
    done = chat(str(toy_model), *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n")
    assert len(done.stdout) > 1
    assert "loading" not in done.stdout
    assert "tokens" not in done.stdout
    rows = done.stderr.splitlines()
    assert rows[0].startswith(f"[loading {toy_model} on ")
    assert rows[-1].startswith("[")
    assert "tokens · " in rows[-1]


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
    assert last.startswith(f"inpage: {folder}: ")
    assert all(row.startswith("[loading ") for row in told)


@pytest.mark.parametrize(
    ("model", "text", "line"),
    [
        ("a/x.gguf", "x.gguf: its metadata is odd", "x.gguf: its metadata is odd"),
        ("a/x-00001-of-00002.gguf", "x-00002-of-00002.gguf is cut", "x-00002-of-00002.gguf is cut"),
        ("a/toy", "toy needs more memory", "toy needs more memory"),
        ("a/toy", "manifest.json is not JSON", "a/toy: manifest.json is not JSON"),
        (".", "manifest.json is not JSON", ".: manifest.json is not JSON"),
        ("hf:owner/name", "there is no such model", "hf:owner/name: there is no such model"),
    ],
)
def test_an_error_names_its_model_once(model: str, text: str, line: str) -> None:
    assert error_line(model, InpageError(text)) == line


def test_no_model_is_a_matter_of_usage() -> None:
    done = chat()
    assert done.returncode == 2
    assert "MODEL" in done.stderr


class Terminal:
    """The view that somebody has of a chat, and what is typed into it."""

    def __init__(self, keyboard: int) -> None:
        self._keyboard = keyboard
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._keyboard, text.encode())

    def until(self, text: str) -> str:
        """Return all that has shown since the last call, up to this text."""
        while text not in self.seen:
            self.seen += os.read(self._keyboard, 1 << 16).decode()
        shown, _, self.seen = self.seen.partition(text)
        return shown


@contextmanager
def chatting(*arguments: str) -> Iterator[Terminal]:
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "inpage", "chat", *arguments]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "TERM": "vt100"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        try:
            yield Terminal(keyboard)
        finally:
            process.kill()
            os.close(keyboard)


UP = "\x1b[A"


def test_in_a_terminal(toy_model: Path) -> None:
    """Commands, progress while it reads, and what is typed during an answer waits."""
    options = ("--temperature", "0", "--max-tokens", "40")
    with chatting(str(toy_model), *options) as chat:
        chat.until("[upload: ")
        chat.until("> ")
        chat.type("/help\n")
        assert "/new" in chat.until("waits for the next prompt.")
        chat.until("> ")
        chat.type("/nothing\n")
        chat.until("[/nothing is not a command")
        chat.until("> ")
        chat.type("/image cat.png\n")
        chat.until("cannot see images")
        chat.until("> ")
        chat.type("the quick brown fox\n")
        chat.until("[reading")
        chat.type("and the lazy dog")  # no Enter: somebody is still at it
        answer = chat.until("> ")
        assert "lazy" not in answer
        assert "tokens · " in answer
        chat.until("and the lazy dog")  # there it is, to be typed on
        chat.type("\n")
        chat.until("[reading")
        chat.until("> ")
        chat.type(UP + UP)
        chat.until("the quick brown fox")
        chat.type("\n")
        chat.until("> ")
        chat.type("/quit\n")
