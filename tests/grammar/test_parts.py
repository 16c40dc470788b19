"""Patterns, numbers and vocabularies, each against something that is right for certain."""

import re
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_runtime.grammar.finite_automata import Move
from py_runtime.grammar.numbers import Bound, number_automaton
from py_runtime.grammar.regex import compile_pattern
from py_runtime.grammar.strings import TEXT, Counted, String
from py_runtime.grammar.vocabulary import TokenTexts, is_plain, token_bytes
from tests.grammar.vocabularies import TOY, texts_of, tokenizer_of
from tests.tokens.reference import REAL

ATOMS = ("a", "b", "[ab]", "[^a]", ".", "^", "$", r"\d", r"[\w-]", "é", r"\u00e9", r"\x61")
QUANTIFIERS = ("", "", "*", "+?", "?", "{2}", "{0,2}", "{1,}")


def patterns() -> st.SearchStrategy[str]:
    def quantified(atom: str, quantifier: str) -> str:
        return atom if atom in "^$" else atom + quantifier

    atoms = st.builds(quantified, st.sampled_from(ATOMS), st.sampled_from(QUANTIFIERS))
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds("".join, st.lists(inner, min_size=1, max_size=3)),
            st.builds("({}|{})".format, inner, inner),
            st.builds("(?:{}){}".format, inner, st.sampled_from(QUANTIFIERS)),
        ),
        max_leaves=6,
    )


@settings(max_examples=200)
@given(patterns(), st.lists(st.text("ab1é-", max_size=6), min_size=5, max_size=5))
def test_patterns_match_what_re_matches(pattern: str, texts: list[str]) -> None:
    oracle = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    automaton = compile_pattern(pattern)
    for text in texts:
        ours = automaton is not None and automaton.matches(text)
        assert ours == bool(oracle.search(text)), text
    if automaton:
        assert oracle.search(automaton.ending(automaton.start))


@pytest.mark.parametrize("first", [0xD7FF, 0xD800, 0xDBFF, 0xDFFF, 0xE000])
def test_half_of_a_pair_is_not_a_character(first: int) -> None:
    automaton = compile_pattern(rf"^[^\u0000-\u{first - 1:04x}]$")
    assert automaton
    wanted = chr(0xE000) if 0xD800 <= first <= 0xDFFF else chr(first)
    assert automaton.ending(automaton.start) == wanted


def numbers_between(random: Random, whole: bool) -> tuple[Bound | None, Bound | None]:
    def bound() -> Bound | None:
        scale = 1 if whole else random.choice((1, 10, 100))
        value = Decimal(random.randint(-300, 300)) / scale
        return Bound(value, open=random.random() < 0.4) if random.random() < 0.8 else None

    return bound(), bound()


def is_between(value: Decimal, low: Bound | None, high: Bound | None) -> bool:
    above = low is None or value > low.value or (value == low.value and not low.open)
    below = high is None or value < high.value or (value == high.value and not high.open)
    return above and below


@pytest.mark.parametrize("whole", [True, False])
def test_numbers_of_a_range_and_no_others(whole: bool) -> None:
    random = Random(3)
    for _ in range(60):
        low, high = numbers_between(random, whole)
        automaton = number_automaton(low, high, whole)
        near = [bound.value for bound in (low, high) if bound]
        values = [*map(Decimal, range(-12, 12)), *near, *(each + 1 for each in near)]
        values += [Decimal(random.randint(-40_000, 40_000)) / 100 for _ in range(40)]
        if not whole:
            values += [each + Decimal(sign) / 10**9 for each in near for sign in (-1, 1)]
        for value in values:
            if whole and value != int(value):
                continue
            ours = automaton is not None and automaton.matches(f"{value:f}")
            assert ours == is_between(value, low, high), (value, low, high)
        if automaton:
            assert is_between(Decimal(automaton.ending(automaton.start)), low, high)


def test_no_number_is_rounded_to_an_open_bound() -> None:
    automaton = number_automaton(Bound(Decimal("0.1"), open=True), None, False)
    assert automaton
    assert automaton.matches("0.10000000000001")
    assert float("0.1000000000000000001") == 0.1
    assert not automaton.matches("0.1000000000000000001")
    assert not automaton.matches("0.100000000000001"), "a digit more than are surely told apart"


@pytest.mark.parametrize("text", ["01", "-", "1.", ".5", "1e", "--1", "+1", "1e5.0", "-01", ""])
def test_what_is_no_number(text: str) -> None:
    for whole in (True, False):
        automaton = number_automaton(None, None, whole)
        assert automaton
        assert not automaton.matches(text)


@pytest.mark.parametrize(
    "name", [TOY, REAL, "gpt2", "llama2", "mistral", "qwen2", "odd_added_tokens"]
)
def test_bytes_of_tokens_are_what_the_decoder_makes_of_them(name: str) -> None:
    tokenizer = tokenizer_of(name)
    texts = token_bytes(tokenizer, tokenizer.vocabulary_size)
    first = next(token for token, text in texts.items() if text == b"a")
    sample = Random(1).sample(sorted(texts), min(len(texts), 600))
    for token in sample:
        if b"\xef\xbf\xbd" not in texts[token]:
            decoded = tokenizer.decode([first, token], skip_special_tokens=False)
            if "\ufffd" not in decoded:
                assert decoded.encode() == b"a" + texts[token]
            else:
                assert not is_plain(texts[token])
    assert not any(token in texts for token in tokenizer._added.as_written)


@pytest.mark.parametrize("name", [TOY, REAL, "llama2"])
def test_spelling(name: str) -> None:
    texts = texts_of(name)
    ascii_and_more = bytes(range(0x20, 0x7F)) + "é😀".encode()
    for text in (b"", b'{"name":"","age":0}', ascii_and_more, b"the quick brown fox" * 30):
        spelled = texts.spell(text)
        assert spelled is not None
        assert b"".join(texts.texts[token] for token in spelled) == text
        assert texts.cost(text) == len(spelled) <= len(text)
    tokens = tokenizer_of(name).encode(" The quick brown fox", add_special_tokens=False)
    assert texts.cost(b" The quick brown fox") <= len(tokens)


def test_spelling_without_the_bytes() -> None:
    tokenizer = tokenizer_of("gpt2_with_prefix_space")
    texts = TokenTexts(tokenizer, tokenizer.vocabulary_size, [])
    (missing,) = {bytes([byte]) for byte in range(256)} - set(texts.texts.values())
    assert texts.spell(b"a" + missing) is None


class CountedInParts(Counted):
    """The same characters, in two ranges."""

    def ranges(self, state: int) -> list[Move]:
        return [
            part
            for low, high, target in super().ranges(state)
            for part in ((low, ord("k"), target), (ord("l"), high, target))
        ]


@pytest.mark.parametrize(("least", "most"), [(0, None), (3, 7)])
def test_any_characters_are_the_same_in_one_range_and_in_two(least: int, most: int | None) -> None:
    """Byte by byte: what may come first, and where it leads."""

    def leads(characters: Counted) -> dict[int, object]:
        moves = [*String(characters).moves((TEXT, 0, 1), 0)]
        found = {byte: to for low, high, to in moves for byte in range(low, high + 1)}
        assert len(found) == sum(high - low + 1 for low, high, _ in moves), "each byte once"
        return found

    assert leads(Counted(least, most)) == leads(CountedInParts(least, most))
