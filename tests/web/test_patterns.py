"""Patterns that the page itself matches strangers' texts with: all of them take linear time."""

import re

import pytest

from tests.web.pattern_steps import steps_of
from tools.files import ROOT

WEB = ROOT / "web"
LITERAL = re.compile(r"/((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+)/([a-z]*)")
SHORT, LONG = 12, 4  # times a piece of text, and how many times that
PIECES = (
    *(
        "-",
        " ",
        "\t",
        "|",
        ":",
        " |",
        "- ",
        ">",
        "> ",
        "1",
        "1. ",
        " 1",
        ",",
        " ,",
        "a",
        "a ",
        "\n",
    ),
    *("\n ", "\n>", "`", "~", "$", "$1", "$a", "$ ", "$$", "\\", "\\(", "\\[", "{", "}", "=", "<"),
    *("</", "<think>", "</think", "<|", "[", "[/THINK", " \t", "v>"),
)
BEFORE = ("", "$1", "$$", "\\(", "<think>")
AFTER = ("", "x")


def literals(name: str, text: str) -> list[tuple[str, str, str]]:
    return [(name, pattern, flags) for pattern, flags in LITERAL.findall(text)]


def script_with(text: str) -> str:
    """Return the only script of the page that has this text, wherever it lies."""
    (script,) = [script for path in WEB.rglob("*.js") if text in (script := path.read_text())]
    return script


def named(*names: str) -> list[tuple[str, str, str]]:
    """Find the literals that constants of the page have."""
    found = []
    for name in names:
        begins = f"const {name} = "
        text = script_with(begins).split(begins, 1)[1]
        found += literals(name, re.split(r";(?: //.*)?\n", text, maxsplit=1)[0])
    return found


def of_maths() -> list[tuple[str, str, str]]:
    """Find how maths begins, and the forms that are put together of raw texts."""
    script = script_with("const PRICE = String.raw`")
    raws = dict(re.findall(r"const (\w+) = String\.raw`(.+)`;", script))

    def put_together(text: str) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda name: put_together(raws[name[1]]), text)

    forms = [form.replace("\\\\", "\\") for form in re.findall(r"new RegExp\(`(.+?)`\)", script)]
    starts = re.findall(r'"(?:block|inline)", (/.+?/m?), \[new', script)
    assert len(forms) == 3
    assert len(starts) == 2
    return [
        *(("a form of maths", put_together(form), "") for form in forms),
        *(found for start in starts for found in literals("how maths begins", start)),
    ]


PATTERNS = [*named("DEEP", "WRITTEN", "MACROS", "MARKERS", "ONLY_END"), *of_maths()]


def is_slow(pattern: str, flags: str, before: str, piece: str, after: str) -> bool:
    short, long = (
        steps_of(pattern, flags, before + piece * count + after) for count in (SHORT, LONG * SHORT)
    )
    return long > 1.5 * LONG * short


def test_all_of_them_are_found() -> None:
    assert len(PATTERNS) == 3 + 12 + 1 + 5


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [row[1:] for row in PATTERNS],
    ids=[f"{at} {row[0]}" for at, row in enumerate(PATTERNS)],
)
def test_steps_grow_as_the_text_does(pattern: str, flags: str) -> None:
    slow = [
        before + piece + after
        for before in BEFORE
        for piece in PIECES
        for after in AFTER
        if is_slow(pattern, flags, before, piece, after)
    ]
    assert slow == []


@pytest.mark.parametrize(
    ("pattern", "before", "piece"),
    [
        (r"^[ |:-]*-[ |:-]*$", "", "-"),
        (r"^\$\d[^$\n]*[ ,][^$\n]*\$", "$1", " ,"),
        (r"\s+$", "", " "),
    ],
)
def test_patterns_that_take_longer_are_found(pattern: str, before: str, piece: str) -> None:
    assert is_slow(pattern, "m", before, piece, "x")
