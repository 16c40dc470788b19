"""Strings of formats and patterns: the last that is allowed, and the first that is not."""

import json
import re
from itertools import product

import pytest

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
    """Of all short texts over a few letters."""
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
