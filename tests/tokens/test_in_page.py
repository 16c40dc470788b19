"""The same tokens in the page as natively: a part of the corpus, in the styles of models."""

import pytest
from tokenizers import normalizers

from py_runtime.tokens.unicode_16 import RUNS
from tests.runners import Runner
from tests.tokens.corpus import lines
from tests.tokens.in_runtime import digest_of
from tests.tokens.reference import (
    SMOLLM2,
    reference,
    reference_ids,
    reference_texts,
    tokenizer_file,
)
from tests.tokens.styles import MODELS

IN_RUNTIME = "tests.tokens.in_runtime"
NAMES = (SMOLLM2, *(maker.__name__ for maker in MODELS), "odd_added_tokens")
CONTEXTS = ["?", "a\u0345?\u0334\u0301", "?\u0307\u093c"]


@pytest.fixture
def inside(request: pytest.FixtureRequest) -> Runner:
    return request.getfixturevalue("in_page")  # asked for by name, so that all share one page


@pytest.mark.browser
@pytest.mark.parametrize(
    "name", [SMOLLM2, *(pytest.param(name, marks=pytest.mark.thorough) for name in NAMES[1:])]
)
def test_ids_and_texts(inside: Runner, name: str) -> None:
    texts = ["", *lines()[:164:8], *lines()[164::60]]
    with_special = reference_ids(name, texts, add_special_tokens=True)
    expected = [
        with_special,
        reference_ids(name, texts, add_special_tokens=False),
        reference_texts(name, with_special, skip_special_tokens=True),
        reference_texts(name, with_special, skip_special_tokens=False),
    ]
    file = tokenizer_file(name)
    ours = inside.run(IN_RUNTIME, "encode_and_decode", tokenizer=file, texts=texts)
    assert ours == expected


def test_streaming(runner: Runner) -> None:
    text = "naïve 👩‍👩‍👧‍👦 你好, мир! 🇩🇪"
    ids = reference("gpt2").encode(text).ids
    parts = runner.run(IN_RUNTIME, "stream", tokenizer=tokenizer_file("gpt2"), ids=ids)
    assert "".join(parts) == text
    assert "" in parts  # some characters take several tokens
    assert len(parts) == len(ids) + 1


def test_half_of_a_surrogate_pair(runner: Runner) -> None:
    fault = runner.run(IN_RUNTIME, "fault_of", tokenizer=tokenizer_file("gpt2"), code=0xD83D)
    assert (
        fault == "the text has half of a surrogate pair, U+D83D at character 1, which no token has"
    )


@pytest.mark.thorough
def test_every_normalisation(runner: Runner) -> None:
    """Python's tables differ natively and in the page; what we make of them does not."""
    texts, digests = runner.run(IN_RUNTIME, "normalise_all", contexts=CONTEXTS)
    assert len(texts) > 70_000
    for form, digest in digests.items():
        theirs = getattr(normalizers, form)()
        assert digest == digest_of([theirs.normalize_str(text) for text in texts]), form


@pytest.mark.browser
def test_our_table_is_unicodes(inside: Runner) -> None:
    """Python 3.14, which the page has, carries the same version of Unicode as our table."""
    version, runs = inside.run(IN_RUNTIME, "category_runs")
    assert version == "16.0.0"
    assert RUNS.replace("\n", "") == runs
