"""The places where the page's interrupt strikes, and where it is passed over."""

import signal
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest

from py_runtime.app import interrupts

CALL, OTHER, ENDED = 7, 8, 9
CODE = "signal.raise_signal(signal.SIGINT)\nwent_on = True"


@pytest.fixture
def wanted() -> Iterator[list[int]]:
    """Let a test say which call the page wants to interrupt."""
    before = signal.getsignal(signal.SIGINT)
    wants = [interrupts.ANY_CALL]
    interrupts.listen(lambda: wants[-1], {CALL, OTHER})
    yield wants
    signal.signal(signal.SIGINT, before)


def is_interrupted(module: str, call: int | None = CALL) -> bool:
    """Return whether code of this module is interrupted while it runs for the call."""
    names: dict[str, Any] = {"__name__": module, "signal": signal, "went_on": False}

    def run() -> None:
        if call is not None:
            interrupts.in_call.set(call)
        try:
            exec(CODE, names)
        except KeyboardInterrupt:
            assert not names["went_on"]

    copy_context().run(run)
    return not names["went_on"]


@pytest.mark.parametrize("module", ["__inpage__", "py_runtime.chat.template", "py_runtime.tokens"])
def test_code_of_others_is_broken_off(wanted: list[int], module: str) -> None:
    assert is_interrupted(module)


@pytest.mark.parametrize(
    "module",
    ["py_runtime.graph.resize", "py_runtime.generation.session", "py_runtime.app.in_page"],
)
def test_bookkeeping_is_not(wanted: list[int], module: str) -> None:
    assert not is_interrupted(module)


def test_bookkeeping_below_users_code_is_not(wanted: list[int]) -> None:
    """The innermost counts: a user who calls the engine does not tear it."""
    inner: dict[str, Any] = {"__name__": "py_runtime.graph.graph", "signal": signal}
    exec("def resize(): signal.raise_signal(signal.SIGINT)", inner)
    interrupts.in_call.set(CALL)
    exec("resize()", {"__name__": "__inpage__", "resize": inner["resize"]})
    interrupts.in_call.set(interrupts.NO_CALL)


def test_printing_is_part_of_the_code_that_prints(wanted: list[int]) -> None:
    inner: dict[str, Any] = {"__name__": "py_runtime.notebook.printed", "signal": signal}
    exec("def write(): signal.raise_signal(signal.SIGINT)", inner)
    interrupts.in_call.set(CALL)
    with pytest.raises(KeyboardInterrupt):
        exec("write()", {"__name__": "__inpage__", "write": inner["write"]})
    interrupts.in_call.set(interrupts.NO_CALL)
    assert not is_interrupted("py_runtime.notebook.printed")  # of nobody's code


def test_only_the_call_that_is_meant(wanted: list[int]) -> None:
    wanted.append(CALL)
    assert is_interrupted("__inpage__", CALL)
    assert not is_interrupted("__inpage__", OTHER)
    assert is_interrupted("__inpage__", ENDED)  # what it left behind keeps all others waiting


def test_a_late_one_and_one_outside_of_calls_do_nothing(wanted: list[int]) -> None:
    assert not is_interrupted("__inpage__", call=None)
    wanted.append(interrupts.NO_CALL)
    assert not is_interrupted("__inpage__")
