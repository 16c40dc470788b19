"""Patterns that would backtrack for ever are refused; those of real tokenizers are not.

Each text here is one that an unbounded pattern would not come back from.
"""

import pytest

from py_runtime.tokens.errors import TextError, TokenizerError
from py_runtime.tokens.patterns import MAX_RUN, Pattern
from py_runtime.tokens.pre_tokenizers import GPT2_PATTERN
from tests.tokens.styles import DEEPSEEK_SPLITS, GPT4O_SPLIT, LLAMA3_SPLIT, QWEN2_SPLIT

SEVERAL = "a repeated part can match the same text in several ways"
BEHIND = "two repeated parts, one behind the other, match the same text"

EVIL = {
    r"([A-Za-z]+)+#": SEVERAL,
    r"(?:a*)*#": SEVERAL,
    r"(?:ab|ab)*#": "two alternatives match nothing at all",  # behind what they have in common
    r"(?:a|ab|b)*#": SEVERAL,
    r"(?:a?b?)+#": SEVERAL,
    r"(?:a{2,5})+#": SEVERAL,
    r"a{2,5}+#": SEVERAL,
    r"(?:(?:a{0,999}){0,999}){0,999}#": SEVERAL,
    r"(?:\w+\s?)*$": SEVERAL,
    r"(?:.*,)*#": SEVERAL,
    r"(?:a+?)+?#": SEVERAL,
    r"(?:(?:a+)+#)*": SEVERAL,
    r"x(?=(?:a+)+#)": SEVERAL,
    r"(?:a+)+(?:(?=#))": SEVERAL,
    r"(?:a+)+$": SEVERAL,
    r"(?:a+)+^": SEVERAL,
    r"(?:x(?:a?|b?))*#": "two alternatives match nothing at all",
    r"(?:x(?:(?=x)|(?=x)))*#": "two alternatives match nothing at all",
    r"(?:a+)+(?!a)(?=#)": SEVERAL,
    r"(?i:(?:ab|AB)+)#": SEVERAL,
    r"a*a*#": BEHIND,
    r"\s*\s*\s*\s*\s*#": BEHIND,
    r"\d+\d+x": BEHIND,
    r"\s*[\r\n]+#": BEHIND,
    r"\w*a?\d*#": BEHIND,
    r".*x.*y.*z": BEHIND,
    r"(?:ab)*(?:ab)*#": BEHIND,
    r"a{99999999999}": "the repetition number is too large",
    "(" * 5000 + ")" * 5000: "nested too deeply",
    "a?" * 500 + "b*#": "it is too long",
    "a" * 300_000: "more than 200000 characters",
}


@pytest.mark.parametrize("source", EVIL, ids=lambda source: source[:40])
def test_an_evil_pattern_is_refused(source: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        Pattern(source, "pre_tokenizer.pattern")
    assert str(caught.value).startswith("tokenizer.json: pre_tokenizer.pattern: ")
    assert EVIL[source] in str(caught.value)
    assert repr(source)[:40] in str(caught.value)
    assert len(str(caught.value)) < 500


def test_an_evil_pattern_beyond_ascii_is_refused_where_it_would_run() -> None:
    pattern = Pattern("(?:[aé]|[bé]c?)+#")
    assert pattern.find_all("plain") == []
    with pytest.raises(TokenizerError, match=SEVERAL):
        pattern.find_all("é" * 100)


TEKKEN_SPLIT = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GOOD = (GPT2_PATTERN, LLAMA3_SPLIT, QWEN2_SPLIT, GPT4O_SPLIT, TEKKEN_SPLIT, *DEEPSEEK_SPLITS)
RUNS = (" ", "\n", " \n", "\t", "a", "A", "aA", "1", "!", "/", "!/", "'s", "é", "漢", "ა", "\u0301")


@pytest.mark.parametrize("source", [source for source in GOOD if source != r"\s+$"])
def test_a_real_pattern_reads_any_long_run(source: str) -> None:
    pattern = Pattern(source)
    for run in RUNS:
        text = run * MAX_RUN
        assert sum(map(len, pattern.find_all(f"{text}x"))) <= len(text) + 1


@pytest.mark.parametrize("source", [r"\s+$", r"\s+#", r"x(?=\s+)"])
def test_a_run_that_is_too_long_is_named(source: str) -> None:
    pattern = Pattern(source, "normalizer.pattern")
    long = " " * MAX_RUN
    assert pattern.find_all(long[:999] + "y") == []
    with pytest.raises(TextError) as caught:
        pattern.find_all(long + "x")
    assert f"a run of {MAX_RUN} characters such as '   '" in str(caught.value)
    assert f"normalizer.pattern: {source!r}" in str(caught.value)


def test_what_cannot_fail_may_be_ambiguous() -> None:
    """The first way is taken, and no other is tried."""
    assert Pattern(r"(?:a+)+").find_all("a" * 1000) == ["a" * 1000]
    assert Pattern(r"a{2,5}+").find_all("a" * 1000) == ["a" * 1000]
