"""The corpus in every style: the ids and texts that `tokenizers` gives."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from py_runtime.tokens import StreamDecoder, TextError, Tokenizer
from tests.tokens.corpus import SIZE, lines
from tests.tokens.reference import (
    NAMES,
    SMOLLM2,
    reference,
    reference_ids,
    reference_texts,
    tokenizer_file,
)
from tests.tokens.styles import ODDITIES, STYLES

pytestmark = [pytest.mark.thorough]


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def ours(name: str) -> Tokenizer:
    return Tokenizer.from_json(tokenizer_file(name))


def differences(
    texts: list[str], ours: Sequence[object], theirs: Sequence[object]
) -> Sequence[object]:
    rows = zip(texts, ours, theirs, strict=True)
    return [(text, mine, other) for text, mine, other in rows if mine != other][:3]


def test_the_corpus_is_what_it_should_be() -> None:
    texts = lines()
    assert len(texts) == SIZE
    assert len(set("".join(texts))) > 40_000


@pytest.fixture(scope="module")
def texts(name: str) -> list[str]:
    """Every second line for the tokenizers of models, every eighth for what tests the rest.

    They begin at different lines, so that among them they have all.
    """
    is_oddity = name in [maker.__name__ for maker in ODDITIES]
    return lines()[[SMOLLM2, *STYLES].index(name) % 2 :: 8 if is_oddity else 2]


@pytest.fixture(scope="module")
def their_ids(name: str, texts: list[str]) -> list[list[int]]:
    return reference_ids(name, texts, add_special_tokens=True)


def test_ids_of_many_lines(ours: Tokenizer, texts: list[str], their_ids: list[list[int]]) -> None:
    assert differences(texts, [ours.encode(text) for text in texts], their_ids) == []


def test_ids_without_special_tokens(name: str, ours: Tokenizer) -> None:
    texts = ["", *lines()[::30]]
    theirs = reference_ids(name, texts, add_special_tokens=False)
    made = [ours.encode(text, add_special_tokens=False) for text in texts]
    assert differences(texts, made, theirs) == []


@pytest.mark.parametrize("skip_special_tokens", [False, True])
def test_texts_of_many_lines(
    name: str, ours: Tokenizer, their_ids: list[list[int]], skip_special_tokens: bool
) -> None:
    ids = their_ids[::4] if skip_special_tokens else their_ids
    theirs = reference_texts(name, ids, skip_special_tokens)
    made = [ours.decode(each, skip_special_tokens) for each in ids]
    assert differences(theirs, made, theirs) == []


def test_texts_of_ids_that_no_text_has(name: str, ours: Tokenizer) -> None:
    """Broken UTF-8, byte tokens in disorder, and ids beyond the vocabulary."""
    rng = Random(7)
    size = ours.vocabulary_size
    ids = [[rng.randrange(size + 3) for _ in range(rng.randint(0, 12))] for _ in range(2000)]
    ids += [[rng.randrange(300) for _ in range(rng.randint(0, 12))] for _ in range(2000)]
    theirs = reference_texts(name, ids, skip_special_tokens=False)
    made = [ours.decode(each, skip_special_tokens=False) for each in ids]
    assert differences(theirs, made, theirs) == []


def test_streaming_gives_whole_characters_and_the_same_text(name: str, ours: Tokenizer) -> None:
    rng = Random(8)
    for ids in reference_ids(name, lines()[::40], add_special_tokens=False):
        whole = ours.decode(ids, skip_special_tokens=False)
        stream = StreamDecoder(ours, skip_special_tokens=False)
        parts = [stream.push(token_id) for token_id in ids]
        assert "".join(parts) + stream.finish() == whole

        # Cut off anywhere, what came so far is how the whole text begins.
        stream = StreamDecoder(ours, skip_special_tokens=False)
        so_far = "".join(stream.push(token_id) for token_id in ids[: rng.randint(0, len(ids))])
        assert whole.startswith(so_far)


@settings(max_examples=40)
@given(text=st.text(max_size=60))
def test_any_text(name: str, ours: Tokenizer, text: str) -> None:
    theirs = reference(name).encode(text).ids
    assert ours.encode(text) == theirs
    assert ours.decode(theirs) == reference(name).decode(theirs)


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff", "\ud83d\ude00"])
def test_half_of_a_surrogate_pair_is_refused(name: str, ours: Tokenizer, text: str) -> None:
    with pytest.raises(TypeError):
        reference(name).encode(text)
    with pytest.raises(TextError, match=r"half of a surrogate pair, U\+D[8-F].. at character [01]"):
        ours.encode(text)


@pytest.mark.parametrize("text", ["a" * 10_000, " " * 10_000, "ab" * 5_000, "é▁" * 3_000])
def test_very_long_words(name: str, ours: Tokenizer, text: str) -> None:
    theirs = reference(name).encode(text).ids
    assert ours.encode(text) == theirs
    assert ours.decode(theirs) == reference(name).decode(theirs)
