"""The output of a hostile model, whose answers, errors and name cannot control a terminal."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from inpage import command
from py_runtime.app.terminal import StatusLine, TerminalChat
from py_runtime.base.errors import InpageError
from tests.runners import in_a_thread, wait

EVIL = "\x1b]0;evil\x07"
SHOWN = "·]0;evil·"


@pytest.fixture(autouse=True)
def no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave Ctrl-C alone: the tests run in a thread, which cannot set a handler."""
    monkeypatch.setattr("signal.signal", lambda *_: None)


class Answering:
    """A model that gives these pieces, and then perhaps an error."""

    def __init__(self, pieces: list[str], fault: str = "") -> None:
        self._pieces = pieces
        self._fault = fault

    async def chat(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
        for text in self._pieces:
            yield SimpleNamespace(text=text, usage=None)
        if self._fault:
            raise InpageError(self._fault)


def answer_of(model: Any) -> bool:
    return wait(TerminalChat("model", None, {})._answer(model, "Hi"))


def test_an_answer_is_text_even_where_pieces_cut_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer_of(Answering(["one\r", "\n\ttwo ", "\x1b", "[2J", "👩\u200d🚀"]))
    assert capsys.readouterr().out == "one\n\ttwo ·[2J👩\u200d🚀\n"


def test_an_error_of_a_template_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert not answer_of(Answering([], f"the chat template refuses these messages: {EVIL}"))
    shown = capsys.readouterr().err
    assert SHOWN in shown
    assert "\x1b" not in shown.replace("\r\x1b[K", "")


def test_progress_is_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    StatusLine().show(EVIL)
    assert capsys.readouterr().err == f"\r\x1b[K[{SHOWN}]"


def refuse(*_: Any) -> Any:
    raise InpageError(f"no tensor {EVIL}")


def test_what_cannot_be_loaded_is_told_in_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("py_runtime.app.software_gpu.use_software_if_alone", lambda: None)
    monkeypatch.setattr("py_runtime.app.terminal.TerminalChat.run", refuse)
    assert in_a_thread(command.main, ["chat", f"{EVIL}.gguf"]) == 1
    assert capsys.readouterr().err == f"inpage: {SHOWN}.gguf: no tensor {SHOWN}\n"
    assert command.refuse(EVIL) == 1
    assert capsys.readouterr().err == f"inpage: {SHOWN}\n"
