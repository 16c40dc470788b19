"""Strings of formats and patterns: the last that is allowed, and the first that is not."""

import json
import re
from itertools import product

import pytest

from py_runtime.grammar.finite_automata import all_but, automaton_of_length, cheapest_character
from py_runtime.tokens.characters import LAST_CODE
from tests.grammar.test_language import accepts, automaton

FORMATS: dict[str, tuple[list[str], list[str]]] = {
    "date": (
        ["1000-01-01", "2024-02-29", "2000-02-29", "2023-12-31", "2023-04-30", "2023-02-28"],
        [
            "0999-01-01",
            "2023-02-29",
            "1900-02-29",
            "2023-04-31",
            "2023-12-32",
            "2023-13-01",
            "2023-00-01",
            "2023-01-00",
            "2023-1-1",
            "12023-01-01",
            "2023-11-31",
            "2023-06-31",
        ],
    ),
    "time": (
        ["00:00:00Z", "23:59:59Z", "19:00:00.1+01:00", "12:00:00.123456-23:59"],
        [
            "24:00:00Z",
            "12:60:00Z",
            "12:00:60Z",
            "12:00:00",
            "12:00:00.Z",
            "12:00:00.1234567Z",
            "12:00Z",
            "12:00:00+24:00",
            "12:00:00+1:00",
        ],
    ),
    "date-time": (["2024-02-29T23:59:59Z"], ["2024-02-29 23:59:59Z", "2024-02-30T00:00:00Z"]),
    "ipv4": (
        ["0.0.0.0", "255.255.255.255", "10.99.100.249", "192.168.1.1"],
        ["256.0.0.0", "260.0.0.0", "300.1.1.1", "1.1.1", "1.1.1.1.1", "01.1.1.1", "1.1.1."],
    ),
    "uuid": (
        ["123e4567-E89B-12d3-a456-426614174000"],
        [
            "123e4567-e89b-12d3-a456-42661417400",
            "123e4567e89b12d3a456426614174000",
            "g23e4567-e89b-12d3-a456-426614174000",
            "123e4567-e89b-12d3-426614174000",
        ],
    ),
    "hostname": (
        ["a", "a-b.c", "a.b.c.d", "a" * 22],
        ["", "-a", "a-", "a..b", "a.b.c.d.e", "a_b", "a" * 23],
    ),
    "email": (
        ["a@b.cd", "a.b+c@d.e.f.org", "a_b-c@x.abcdefghijkl"],
        ["@b.cd", "a@b", "a@b.c", "a.@b.cd", ".a@b.cd", "a@b.c.d.e.fg", "a@b.abcdefghijklm"],
    ),
    "uri": (
        ["http://a", "https://a.b:80/c/d?e=f&g#h", "https://a/", "http://a:9999", "http://a?#"],
        [
            "ftp://a",
            "http://",
            "http:/a",
            "http://a:0",
            "http://a:1",
            "http://a:99999",
            "http://a b",
        ],
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str) -> None:
    machine = automaton({"type": "string", "format": name})
    allowed, refused = FORMATS[name]
    assert [text for text in allowed if not accepts(machine, json.dumps(text))] == []
    assert [text for text in refused if accepts(machine, json.dumps(text))] == []
    ending = json.loads(b"".join(machine.ending(machine.start)))
    assert accepts(machine, json.dumps(ending))


PATTERNS = [
    r"^a{2,3}$",
    r"^(ab|c)*d?$",
    r"^[^a-y]+$",
    r"^x?y+z*$",
    r"^\d\D\w\W\s\S$",
    r"^a|b$",
    r"b",
    r"^(?:a|bc){2}$",
    r"^.$",
    r"^[a\-z\]]{1,2}$",
    r"^a{0}b{1,}$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_re_matches(pattern: str) -> None:
    """Every short text over a few letters is tried."""
    machine = automaton({"type": "string", "pattern": pattern})
    texts = ["".join(chars) for length in range(5) for chars in product("abcdz", repeat=length)]
    texts += ["".join(chars) for chars in product("0a_ \n-]", repeat=2)] + [
        "0a_ \tx",
        "1!b-\n.",
        "y",
    ]
    texts += ["xyyzz", "\u00e9", "\u2003", "\U0001f600"]
    allowed = [text for text in texts if accepts(machine, json.dumps(text, ensure_ascii=False))]
    assert allowed == [text for text in texts if re.search(pattern.replace("$", r"\Z"), text)]


@pytest.mark.parametrize(
    ("low", "high", "char", "nbytes"),
    [
        *((0, LAST_CODE, "a", 1), (0x61, 0x7A, "a", 1), (0x7A, 0x7B, "z", 1), (0x7B, 0x7F, "{", 1)),
        *((0x5B, 0x60, "]", 1), (0x5B, 0x5B, "[", 1), (0x5C, 0x5C, "\\", 2), (0x5D, 0x5D, "]", 1)),
        *((0x30, 0x60, "0", 1), (0x3A, 0x60, "A", 1), (0x21, 0x23, "#", 1), (0x21, 0x22, "!", 1)),
        *(
            (0x22, 0x22, '"', 2),
            (0x1F, 0x20, " ", 1),
            (0x20, 0x20, " ", 1),
            (0x1F, 0x1F, "\x1f", 6),
        ),
        *(
            (0x20, 0x21, " ", 1),
            (0x7E, 0x7F, "~", 1),
            (0x7F, 0x7F, "\x7f", 1),
            (0x80, 0x90, "\x80", 2),
        ),
        *((0xD7FF, 0xD7FF, "\ud7ff", 3), (0xD800, 0xF000, "\ue000", 3)),
        *((0xDFFF, 0xF000, "\ue000", 3), (0xE000, 0xF000, "\ue000", 3)),
        (0x10000, LAST_CODE, "\U00010000", 4),
    ],
)
def test_the_character_that_takes_the_fewest_bytes(
    low: int, high: int, char: str, nbytes: int
) -> None:
    assert cheapest_character(low, high) == (char, nbytes)


def test_automata_of_lengths_and_of_all_but_some_texts() -> None:
    """Every code point has its place, the very first and the very last too."""
    every = LAST_CODE
    assert automaton_of_length(1, 2).moves == [[(0, every, 1)], [(0, every, 2)], []]
    assert automaton_of_length(1, 2).accepting == [False, True, True]
    assert automaton_of_length(1, None).moves == [[(0, every, 1)], [(0, every, 1)]]
    found = all_but(["b", "\0", chr(every)])
    b = ord("b")
    assert found.moves == [
        [(0, 0, 2), (1, b - 1, 4), (b, b, 1), (b + 1, every - 1, 4), (every, every, 3)],
        *[[(0, every, 4)]] * 4,
    ]
    assert found.accepting == [True, False, False, False, True]
