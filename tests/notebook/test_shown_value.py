"""The Python box's view of a value, and a model in plain words."""

import io
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from py_runtime.notebook import printed as printing_out
from py_runtime.notebook.printed import AT_ONCE, SECONDS, Printed
from py_runtime.notebook.shown_value import MAX_CHARACTERS, shown_value

IN_ITSELF: list[Any] = [1]
IN_ITSELF.append(IN_ITSELF)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("two\nlines", "two\nlines"),
        ({"a": [1, 2]}, "{'a': [1, 2]}"),
        (np.arange(3, dtype=np.float32), "array of float32, 3\n[0. 1. 2.]"),
        (np.float32(2), "np.float32(2.0)"),
        ((), "()"),
    ],
)
def test_short_values_are_shown_whole(value: object, text: str) -> None:
    assert shown_value(value) == text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((300, 300)), "array of float64, 300 × 300"),
        (list(range(1000)), "59,\n … 940 more]"),
        (tuple(range(1000)), "… 940 more)"),
        (set(range(1000)), "… 940 more"),
        ({key: key for key in range(1000)}, "… 940 more: "),
        ([list(range(1000))] * 1000, "… 940 more"),
        ({"array": np.zeros((300, 300))}, "..."),
        ("x" * 20_000, "(20,000 characters in all)"),
        (IN_ITSELF, "Recursion"),
    ],
)
def test_long_ones_are_summarised(value: object, words: str) -> None:
    shown = shown_value(value)
    assert words in shown
    assert len(shown) < MAX_CHARACTERS + 50


def test_what_is_printed_is_told_line_by_line_until_it_is_much() -> None:
    told: list[str] = []
    printed = Printed(told.append)
    for piece in ("a", "\n", "b\n", "c"):
        printed.write(piece)
    assert told == ["a\n", "b\n"]
    printed.flush()
    assert told == ["a\n", "b\n", "c"]
    for at in range(50 * AT_ONCE):
        printed.write(f"{at}\n")
    printed.flush()
    assert "".join(told[3:]) == "".join(f"{at}\n" for at in range(50 * AT_ONCE))
    assert len(told) < 10 * AT_ONCE


def test_what_is_printed_often_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(printing_out, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    told: list[str] = []
    printed = Printed(told.append)
    for _ in range(AT_ONCE + 5):
        printed.write("x\n")
    assert len(told) == AT_ONCE - 1
    now[0] += 0.75 * SECONDS
    printed.write("y\n")
    assert len(told) == AT_ONCE - 1
    now[0] += 0.75 * SECONDS
    printed.write("z\n")
    assert told[-1] == "x\n" * 6 + "y\nz\n"


def test_calls_hear_what_they_print_themselves() -> None:
    before = io.StringIO()
    told: list[str] = []
    output = printing_out._Output(cast(Any, before))
    assert output.writable()
    assert output.write("outside") == 7
    with printing_out.printing(told.append):
        assert output.write("in\nside") == 7
        output.flush()
        assert told == ["in\nside"]
    assert before.getvalue() == "outside"
    output.flush()
