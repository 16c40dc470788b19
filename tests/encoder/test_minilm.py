"""all-MiniLM-L6-v2, as people have it: torch's vectors, and what is found first by them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser
from transformers import AutoModel, AutoTokenizer

import inpage
from tests.app.conftest import ApiPage, opened
from tests.conftest import serving
from tests.encoder.checkpoints import gguf_of, hidden_states, pooled
from tests.encoder.minilm import NAME, minilm
from tests.runners import wait
from tests.tokens.corpus import SENTENCES

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

TEXTS = [text for text in SENTENCES if text.strip()][:50]
LONG = "x " * 300  # tokens and more
LIMIT = 1e-4  # relative RMS


@pytest.fixture(scope="module")
def torchs() -> np.ndarray:
    """Return torch's vectors of all sentences and of the long text."""
    model, tokenizer = (kind.from_pretrained(minilm()) for kind in (AutoModel, AutoTokenizer))
    states = [
        hidden_states(model.eval(), tokenizer(text, truncation=False)["input_ids"])
        for text in (*TEXTS, LONG)
    ]
    vectors = np.stack([pooled(each) for each in states])
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def check(vectors: np.ndarray, torchs: np.ndarray) -> None:
    difference = np.sqrt(np.mean((vectors - torchs) ** 2) / np.mean(torchs**2))
    assert difference < LIMIT
    found, wanted = ((each[:-1] @ each[:-1].T).argsort(axis=1) for each in (vectors, torchs))
    assert (found == wanted).all(), "each sentence ranks the others as torch's vectors do"


# A software GPU is slow: there a few sentences, and what takes several chunks.
@pytest.mark.parametrize(("device", "count"), [("gpu", 8), ("cpu", len(TEXTS))])
def test_vectors_and_ranks_are_torchs(torchs: np.ndarray, device: str, count: int) -> None:
    async def embed() -> np.ndarray:
        model = await inpage.load(str(minilm()), device=device)
        assert isinstance(model, inpage.Encoder)
        together = await model.embed([*TEXTS[:count], LONG])
        alone = [await model.embed(text) for text in TEXTS[:3]]
        model.unload()
        np.testing.assert_allclose(np.concatenate(alone), together[:3], atol=1e-5)
        return together

    check(wait(embed()), torchs[[*range(count), -1]])


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiPage]:
    """Start a page whose site has it as a GGUF file."""
    folder = tmp_path_factory.mktemp("models")
    lines = (minilm() / "vocab.txt").read_text().removesuffix("\n").split("\n")
    words = {line: number for number, line in enumerate(lines)}
    model = AutoModel.from_pretrained(minilm())
    gguf_of("bert", model, words=words).tofile(folder / f"{NAME}.gguf")
    with serving("--models", str(folder)) as address, opened(browser, address) as api:
        yield api


CREATE = "return (await inpage.embeddings.create({ input: given })).data.map((d) => d.embedding)"
CHAT = "return inpage.chat.completions.create({ messages: [{ role: 'user', content: 'Hello' }] })"


@pytest.mark.browser
def test_the_page_gives_the_same(page: ApiPage, torchs: np.ndarray) -> None:
    loaded: dict[str, Any] = page.run("return inpage.load(given)", NAME)
    assert loaded["is_encoder"]
    few = [*range(8), -1]
    check(np.array(page.run(CREATE, [*TEXTS[:8], LONG])), torchs[few])
    error = page.fails(CHAT)
    assert error["code"] == "invalid_request"
    assert f"{NAME} is a text encoder" in error["message"]
