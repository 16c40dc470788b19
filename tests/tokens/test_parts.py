"""The parts of a tokenizer one by one, against the same parts of `tokenizers`."""

from typing import Any

import pytest
from tokenizers import Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Reference

from py_runtime.tokens import Tokenizer
from py_runtime.tokens.added_tokens import AddedToken, AddedTokens, is_word, stands_alone
from py_runtime.tokens.characters import union
from py_runtime.tokens.errors import TokenizerError
from py_runtime.tokens.normalizers import build_normalizer
from py_runtime.tokens.patterns import ALL, Pattern, Translator
from py_runtime.tokens.pre_tokenizers import build_pre_tokenizer
from py_runtime.tokens.section import Section
from tests.tokens.corpus import SENTENCES, lines

# Every character of two planes but for vast uniform stretches, and some of these.
CODES = (
    *range(0xD800),
    *range(0xF8F0, 0x12600),
    *range(0x16000, 0x20000),
    *range(0x20000, 0x110000, 199),
)
CHARACTERS = [chr(code) for code in CODES]
PAIRED = CHARACTERS[:0xD800]  # those of the first plane, but for private ones and forms
SETS = r"""
    \p{L} \p{N} \p{M} \p{P} \p{S} \p{Z} \p{C} \p{Lu} \p{Ll} \p{Lt} \p{Lm} \p{Lo} \p{Nd} \p{Nl}
    \p{No} \p{Cn} \P{L} \p{^N} \s \S \d \D \w \W \h \H . [\s\p{L}] [^\s\p{L}\p{N}] [^\P{L}x]
    [\]\-^] []a] (?i:s) (?i:[k-s]) \x{1F600} \u00e9 [à-ÿ一-龥] \.
"""
BEHAVIORS = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
PATTERNS = (
    " ", "a+", "ab", "[a-z]", r"\s+", r"\d{2}", r"\d{1,3}+", r"(?=[A-Z])", "x*", "(ab|a)(b?)",
    r"\w+(?!\w)", r"(?<=a)b", r"(?<!a)b", r"(?>a+)b", "a++b", "a*?b", "[a-c]{2,}?", "a{,2}b",
    "(?i)AB", "(?i:É)", r"a\z", r"a\Z", "^", "$", r"[\r\n]+", r"\t", "{", "a|", "^a", "a$", r"\Aa",
)  # fmt: skip
TEXTS = (
    "", "a", "abc", "aaab ab  b", "Hello World ABC", "12 345 6789", "xxaxx", "ab\nab\n", "\n\n",
    "é É ÀB", "a b a\r\n\r\nb", "{a} |b| a|", "ab12AB 34\tx",
)  # fmt: skip


def found_by_tokenizers(pattern: str, text: str) -> set[str]:
    kept = pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str(text)
    return set(text) - set("".join(part for part, _ in kept))


@pytest.mark.long
@pytest.mark.parametrize("pattern", SETS.split())
def test_a_set_has_the_same_characters(pattern: str) -> None:
    """Two texts are needed, because patterns have a form of their own for ASCII."""
    runs = f"{pattern}+"
    ours = Pattern(runs)
    for first, last in ((0, 0x80), (0x80, len(CHARACTERS))):
        text = "".join(CHARACTERS[first:last])
        assert set("".join(ours.find_all(text))) == found_by_tokenizers(runs, text)


@pytest.mark.parametrize("behavior", BEHAVIORS)
@pytest.mark.parametrize("inverted", [False, True])
def test_splitting(behavior: str, inverted: bool) -> None:
    for pattern in PATTERNS:
        theirs = pre_tokenizers.Split(Regex(pattern), behavior, invert=inverted)
        fields = {"type": "Split", "pattern": {"Regex": pattern}, "invert": inverted}
        fields["behavior"] = behavior.title().replace("_", "").replace("with", "With")
        ours = build_pre_tokenizer(Section("pre_tokenizer", fields))
        for text in TEXTS:
            expected = [part for part, _ in theirs.pre_tokenize_str(text)]
            assert [part for part in ours(text, True) if part] == expected, (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        ("a*", "xay", ["", "a"]),
        ("a*", "ay", ["a"]),
        ("(?=x)|x", "xy", ["x"]),  # of matches that are empty, the first is at the beginning, too
    ],
)
def test_an_empty_piece_says_that_the_beginning_is_gone(
    pattern: str, text: str, pieces: list[str]
) -> None:
    fields = {"type": "Split", "pattern": {"Regex": pattern}, "invert": True, "behavior": "Removed"}
    assert build_pre_tokenizer(Section("pre_tokenizer", fields))(text, True) == pieces


def check_pre_tokenizer(theirs: Any, fields: dict[str, Any]) -> None:
    ours = build_pre_tokenizer(Section("pre_tokenizer", fields))
    for text in [*SENTENCES, *lines()[::20], "".join(CHARACTERS[:0x3000])]:
        expected = [part for part, _ in theirs.pre_tokenize_str(text)]
        assert [part for part in ours(text, True) if part] == expected, text


def test_digits() -> None:
    for alone in (False, True):
        fields = {"type": "Digits", "individual_digits": alone}
        check_pre_tokenizer(pre_tokenizers.Digits(alone), fields)
    numeric = pre_tokenizers.Digits(individual_digits=True)
    ours = build_pre_tokenizer(Section("", {"type": "Digits", "individual_digits": True}))
    for first in range(0, len(CHARACTERS), 0x8000):
        text = "".join(CHARACTERS[first : first + 0x8000])
        assert ours(text, True) == [part for part, _ in numeric.pre_tokenize_str(text)]


def test_whitespace() -> None:
    check_pre_tokenizer(pre_tokenizers.Whitespace(), {"type": "Whitespace"})
    check_pre_tokenizer(pre_tokenizers.WhitespaceSplit(), {"type": "WhitespaceSplit"})


def test_split_by_a_string_and_metaspace_in_a_sequence() -> None:
    """The first word is gone, so no word starts the text when Metaspace sees it."""
    steps = [
        pre_tokenizers.Split("a", "removed"),
        pre_tokenizers.Metaspace(prepend_scheme="first"),
    ]
    fields = {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"String": "a"}, "behavior": "Removed", "invert": False},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        ],
    }
    check_pre_tokenizer(pre_tokenizers.Sequence(steps), fields)


def test_lowercase_of_every_character() -> None:
    ours = build_normalizer(Section("", {"type": "Lowercase"}))
    text = "ΟΔΥΣΣΕΥΣ" + "".join(CHARACTERS)
    assert ours(text) == normalizers.Lowercase().normalize_str(text)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_strip(left: bool, right: bool) -> None:
    ours = build_normalizer(
        Section("", {"type": "Strip", "strip_left": left, "strip_right": right})
    )
    for text in ("", " a ", "\x1c \x85a\u3000\x1f", "\u200b a \u200b", " \t\n"):
        assert ours(text) == normalizers.Strip(left, right).normalize_str(text)


def test_replace_by_a_pattern() -> None:
    section = Section("", {"type": "Replace", "pattern": {"Regex": r"\s+|x*"}, "content": "-"})
    theirs = normalizers.Replace(Regex(r"\s+|x*"), "-")
    for text in ("", "a b", "  xx y  ", "xyx"):
        assert build_normalizer(section)(text) == theirs.normalize_str(text)


UNSUPPORTED = {
    r"\p{Han}": r"\p{Han} is not supported",
    r"\p{Lq}": r"\p{Lq} is not supported",
    r"\b": r"\b is not supported",
    r"(a)\1": r"\1 is not supported",
    r"a\k<x>": r"\k is not supported",
    "(?<x>a)": "the group '(?<x' is not supported",
    "(?m:a)": "the group '(?m:' is not supported",
    "a{2}?": "'{2}?' is not supported",
    "[a[bc]]": "'[b' inside [...] is not supported",
    "[[:alpha:]]": "'[:' inside [...] is not supported",
    "[a&&b]": "'&&' inside [...] is not supported",
    "[a-": "a missing ] inside [...] is not supported",
    r"[\s-z]": "a range between sets is not supported",
    "[z-a]": "a range runs backwards",
    "a\\": "\\ is not supported",
    "(a": "missing ), unterminated subpattern at position 0",
    "a)": "unbalanced parenthesis at position 1",
    "+": "nothing to repeat at position 0",
}


@pytest.mark.parametrize("pattern", UNSUPPORTED)
def test_a_pattern_that_is_not_supported_is_named(pattern: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        Pattern(pattern, "pre_tokenizer.pattern")
    text = f"tokenizer.json: pre_tokenizer.pattern: {UNSUPPORTED[pattern]} in {pattern!r}"
    assert str(caught.value) == text


def test_patterns_for_all_of_unicode_stay_small() -> None:
    """A few thousand characters: what is compiled must not weigh on a start."""
    assert len(Translator(r"[^\s\p{L}\p{N}]+", ALL).translate()) < 20_000


@pytest.mark.parametrize("normalized", [False, True])
def test_added_tokens_leave_no_empty_text(normalized: bool) -> None:
    """A pre-tokenizer might put its sign for a space there."""
    token = AddedToken(
        7, "<x>", single_word=False, lstrip=False, rstrip=False, normalized=normalized, special=True
    )
    added = AddedTokens([token], lambda text: text)
    for text in ("", "<x>", "a<x>", "<x>a", "<x><x>", "a<x><x>b"):
        spans = list(added.split(text))
        assert [span.token_id for span in spans if span.text == "<x>"] == [7] * text.count("<x>")
        assert all(span.text for span in spans), text
        assert "".join(span.text for span in spans) == text


@pytest.mark.parametrize(
    ("text", "alone"),
    [("word", True), ("aword", False), ("worda", False), (" word ", True), ("a-word-a", True)],
)
def test_a_single_word_stands_alone(text: str, alone: bool) -> None:
    start = text.index("word")
    assert stands_alone(text, start, start + len("word")) is alone


def test_ranges_that_touch_become_one() -> None:
    assert union([(5, 6)], [(1, 2), (3, 4)], [(8, 9)]) == [(1, 6), (8, 9)]
    assert union([(1, 9)], [(2, 3)]) == [(1, 9)]


def test_letters_and_digits_at_the_edges_of_their_ranges() -> None:
    assert [char for char in "/09:@AZ[^_`az{" if is_word(char)] == [*"09AZ_az"]


@pytest.mark.parametrize("known", ["a", "▁"])
def test_what_is_unknown_around_a_space_sign(known: str) -> None:
    """Words are cut before such signs only where a token has one."""
    vocabulary = {"<unk>": 0, "b": 1, known: 2}
    reference = Reference(models.BPE(vocabulary, [], unk_token="<unk>", fuse_unk=True))
    own = Tokenizer.from_json(reference.to_str().encode())
    for text in ("é▁é", "▁▁é", "é▁▁b", "b▁b", "▁"):
        assert own.encode(text) == reference.encode(text).ids, text


@pytest.mark.parametrize("step", ["clean_text", "handle_chinese_chars", "strip_accents"])
def test_each_character_in_berts_normalizer(step: str) -> None:
    steps = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents"), False)
    options = {**steps, step: True, "lowercase": False}
    theirs = normalizers.BertNormalizer(**options)
    ours = build_normalizer(Section.of("", {"type": "BertNormalizer", **options}))
    wrong = [char for char in PAIRED if ours(f"a{char}b") != theirs.normalize_str(f"a{char}b")]
    assert wrong == []


def test_each_character_in_berts_pre_tokenizer() -> None:
    theirs = pre_tokenizers.BertPreTokenizer()
    ours = build_pre_tokenizer(Section.of("", {"type": "BertPreTokenizer"}))
    texts = [f"a{char}{char} b" for char in PAIRED]
    wanted = [[word for word, _ in theirs.pre_tokenize_str(text)] for text in texts]
    assert [list(ours(text, True)) for text in texts] == wanted
