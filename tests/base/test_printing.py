"""Texts of strangers, printed so that a terminal shows them and does nothing else."""

import io

import pytest

from py_runtime.base.printing import print_plainly, printable

CLEANED = {
    "\x1b]0;title\x07": "·]0;title·",
    "\x1b[2J\x9b2J": "·[2J·2J",
    "over\rwritten": "overwritten",
    "one\r\ntwo": "one\ntwo",
    "a\x00b\x7fc\x08d": "a·b·c·d",
    "\u202ereversed\u2066": "·reversed·",
    "half \ud800 a pair": "half · a pair",
}
LEFT_ALONE = [
    "",
    "two\n\tlines\n",
    "Köln · 你好　世界 · naïve\u00a0!",
    "👩\u200d🚀 नमस्\u200cते שלום\u200f",
]


@pytest.mark.parametrize("text", CLEANED)
def test_what_a_terminal_would_obey_is_replaced(text: str) -> None:
    assert printable(text) == CLEANED[text]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_people_write_is_left_alone(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("text", [*CLEANED, *LEFT_ALONE])
def test_pieces_are_cleaned_as_the_whole_is(text: str) -> None:
    output = io.StringIO()
    for character in text:
        print_plainly(character, end="", file=output)
    assert output.getvalue() == printable(text)
