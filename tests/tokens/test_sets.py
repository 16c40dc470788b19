"""Sets of characters against Python's own sets, and words that are remembered."""

import unicodedata
from itertools import combinations, pairwise

import pytest

from py_runtime.tokens import bpe, characters
from py_runtime.tokens.backtracking import (
    MAX_COPIES,
    MAX_PLACES,
    PlaceAutomaton,
    _covers,
    _intersect,
    _overlap,
    bounded_runs,
)
from py_runtime.tokens.characters import LAST_CODE, Ranges

SMALL: list[Ranges] = [
    *([], [(0, 0)], [(1, 1)], [(0, 1)], [(0, 3)], [(2, 5)], [(4, 5)], [(0, 0), (2, 3)]),
    *([(1, 1), (3, 3), (5, 5)], [(0, 6)], [(6, 9)], [(7, 9)]),
]


def members(ranges: Ranges) -> set[int]:
    return {code for low, high in ranges for code in range(low, high + 1)}


@pytest.mark.parametrize(("one", "other"), [*combinations(SMALL, 2)], ids=str)
def test_sets_of_ranges_are_sets(one: Ranges, other: Ranges) -> None:
    a, b = members(one), members(other)
    both = characters.union(one, other)
    assert members(both) == a | b
    assert all(left[1] + 1 < right[0] for left, right in pairwise(both))
    assert members(_intersect(one, other)) == members(_intersect(other, one)) == a & b
    assert _overlap(one, other) is bool(a & b)
    assert _covers(one, other) is (b <= a)
    assert _covers(other, one) is (a <= b)


@pytest.mark.parametrize("ranges", SMALL, ids=str)
def test_all_others(ranges: Ranges) -> None:
    others = characters.complement(ranges)
    assert members(characters.ranges_up_to(others, 20)) == set(range(21)) - members(ranges)
    assert characters.complement(others) == ranges
    assert sum(high - low + 1 for low, high in [*ranges, *others]) == LAST_CODE + 1


def test_the_first_and_the_last_character() -> None:
    assert characters.complement([(0, LAST_CODE)]) == []
    assert characters.complement([(0, LAST_CODE - 1)]) == [(LAST_CODE, LAST_CODE)]
    assert characters.complement([(1, LAST_CODE)]) == [(0, 0)]
    assert characters.ranges_up_to([(3, 5), (7, 9)], 7) == [(3, 5), (7, 7)]
    assert characters.ranges_up_to([(3, 5), (7, 9)], 6) == [(3, 5)]
    assert characters.ranges_of_text("ba c") == [(32, 32), (97, 99)]


@pytest.mark.parametrize("name", ["Lu", "Nd", "Zs", "Pc", "Cc"])
def test_categories_of_ascii_are_those_of_python(name: str) -> None:
    found = members(characters.ranges_up_to(characters.category(name) or [], 0x7F))
    assert found == {code for code in range(0x80) if unicodedata.category(chr(code)) == name}
    assert characters.category("") is None
    assert characters.category("Xx") is None


LETTER_A = [(ord("a"), ord("a"))]
BOTH_A = [(ord("A"), ord("A")), (ord("a"), ord("a"))]


@pytest.mark.parametrize(
    ("pattern", "runs"),
    [
        ("a+b", [LETTER_A]),
        ("(?i:a+)b", [BOTH_A]),
        ("(?i:(?:a)+)b", [BOTH_A]),
        ("(?:(?i:a)+)b", [BOTH_A]),
        ("a+", []),
        ("a{9,}b", [LETTER_A]),
        (f"a{{{MAX_COPIES}}}b", []),
        (f"a{{1,{MAX_COPIES}}}b", []),
        (f"a{{1,{MAX_COPIES + 1}}}b", [LETTER_A]),
        ("[^b]+b", [[(0, ord("a")), (ord("c"), LAST_CODE)]]),
        (r"(?=a+)b", [LETTER_A]),
    ],
)
def test_runs_that_must_be_bounded(pattern: str, runs: list[Ranges]) -> None:
    assert bounded_runs(pattern) == runs


@pytest.mark.parametrize("pattern", ["(a|a)*b", "(a*)*b", "a+a+b", "(?i:a)+A+b", "()|()"])
def test_patterns_that_try_in_many_ways(pattern: str) -> None:
    with pytest.raises(ValueError, match="match"):
        bounded_runs(pattern)


def test_a_pattern_has_so_many_places() -> None:
    bounded_runs("a" * MAX_PLACES)
    with pytest.raises(ValueError, match="too long"):
        bounded_runs("a" * (MAX_PLACES + 1))
    automaton = PlaceAutomaton()
    assert automaton.sequence([]).empty


# Words that are remembered ------------------------------------------------------------------------


def test_words_are_remembered_until_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe, "_MAX_REMEMBERED", 3)
    monkeypatch.setattr(bpe, "_MAX_REMEMBERED_LENGTH", 4)
    asked: list[str] = []

    class Counting:
        def ids(self, word: str) -> list[int]:
            asked.append(word)
            return list(map(ord, word))

    words = bpe.RememberedWords(Counting())
    for word in ("a", "b", "c", "a", "b", "c"):
        assert words[word] == [ord(word)]
    assert asked == ["a", "b", "c"], "each once"
    assert words["d"] == [ord("d")]
    assert list(words) == ["d"], "with one too many it starts anew"
    for _ in range(2):
        assert words["abcd"] == [97, 98, 99, 100]
        assert words["abcde"] == [97, 98, 99, 100, 101]
    assert asked == ["a", "b", "c", "d", "abcd", "abcde", "abcde"], "long ones each time"
