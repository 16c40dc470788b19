"""Long texts: of those that no context holds, only the beginning is encoded."""

from functools import partial

import pytest

from py_runtime.tokens import Tokenizer, pre_tokenizers
from tests.fuzz.text_targets import PRE_TOKENIZERS
from tests.growth import count_steps

TEXT = "The quick brown fox, 1234 times:\n  jumps over   the lazy dog. "
VOCABULARY = {chr(code): code - 32 for code in range(32, 127)} | {
    "\n": 95,
    "Ġ": 96,
    "▁": 97,
    "Ċ": 98,
}


def tokenizer_with(pre_tokenizer: dict[str, object] | None) -> Tokenizer:
    model = {"type": "BPE", "vocab": VOCABULARY, "merges": [], "unk_token": "a"}
    return Tokenizer.from_json({"model": model, "pre_tokenizer": pre_tokenizer})


KINDS = [None, *PRE_TOKENIZERS, {"type": "Sequence", "pretokenizers": PRE_TOKENIZERS[4:7]}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_piece_is_cut_like_a_short_one(
    kind: dict[str, object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tokenizer_with(kind).encode(TEXT * 3)
    monkeypatch.setattr(pre_tokenizers, "LONG_PIECE", 10)
    assert tokenizer_with(kind).encode(TEXT * 3) == whole


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [0, 1, 50])
def test_the_beginning_is_that_of_the_whole(kind: dict[str, object] | None, most: int) -> None:
    tokenizer = tokenizer_with(kind)
    whole, first = tokenizer.encode(TEXT * 3), tokenizer.encode(TEXT * 3, most=most)
    assert most < len(first) <= len(whole)
    assert first == whole[: len(first)]
    assert tokenizer.encode(TEXT, most=len(whole)) == tokenizer.encode(TEXT)


def test_what_lies_behind_enough_tokens_is_not_looked_at() -> None:
    byte_level = next(kind for kind in PRE_TOKENIZERS if kind["type"] == "ByteLevel")
    for kind in (None, byte_level):
        tokenizer = tokenizer_with(kind)
        short, long = (
            count_steps(partial(tokenizer.encode, text, most=100))
            for text in (TEXT * 2000, TEXT * 8000)
        )
        assert long < 1.1 * short


def test_characters_without_a_token_are_not_counted() -> None:
    """A word that seems too long is encoded whole where much of it has no token."""
    tokenizer = Tokenizer.from_json({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})
    assert tokenizer.encode("b" * 1000 + "a", most=5) == [0]
