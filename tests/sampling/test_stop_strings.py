"""Stop strings: what is shown, what is held back, and when."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_runtime.sampling import StopStrings
from tests.sampling.reference import held_back, text_before_stop

# Few letters, so that stops overlap, repeat themselves and begin with each other.
STOPS = st.lists(st.text("ab", min_size=1, max_size=5), max_size=4)
PUSHES = st.lists(st.text("abc", max_size=6), max_size=20)


@settings(max_examples=500)
@given(STOPS, PUSHES)
def test_against_the_reference(stops: list[str], pushes: list[str]) -> None:
    watcher = StopStrings(stops)
    text = shown = ""
    for push in pushes:
        text += push
        shown += watcher.push(push)
        before = text_before_stop(text, stops)
        assert watcher.stopped == (before is not None)
        if before is None:
            assert shown + held_back(text, stops) == text
        else:
            assert shown == before
    released = watcher.finish()
    assert shown + released == (shown if watcher.stopped else text)
    assert watcher.finish() == ""


@pytest.mark.parametrize(
    ("stops", "pushes", "shown"),
    [
        ([], ["a", "b"], ["a", "b", ""]),
        (["###"], ["a#", "#b", "##", "#c"], ["a", "##b", "", "", ""]),
        (["###"], ["a##"], ["a", "##"]),  # the end releases what was held back
        (["END"], ["the E", "N", "D of"], ["the ", "", "", ""]),
        (["END"], ["E", "N", "T", "E"], ["", "", "ENT", "", "E"]),
        (["aab"], ["a", "a", "a", "b"], ["", "", "a", "", ""]),  # a match within a failed one
        (["ab", "abc"], ["xab", "c"], ["x", "", ""]),
        (["abcd", "bc"], ["abcd"], ["a", ""]),  # complete first, though it begins later
        (["bc", "abc"], ["ab", "c"], ["", "", ""]),  # complete at once: the longer
        (["\n\nUser:"], ["Hi.\n", "\nUse", " it"], ["Hi.", "", "\n\nUse it", ""]),
        (["🙂"], ["so 🙂 no"], ["so ", ""]),
    ],
)
def test_pushes(stops: list[str], pushes: list[str], shown: list[str]) -> None:
    watcher = StopStrings(stops)
    assert [*map(watcher.push, pushes), watcher.finish()] == shown
