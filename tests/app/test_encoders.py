"""A text encoder beside a model that chats: who answers what, in the page."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from tests.app.conftest import ApiPage, opened
from tests.conftest import serving
from tests.encoder.gguf_files import SMALL, small_checkpoint, small_encoder
from tests.toy_model import NAME

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

ENCODER, CHECKPOINT = "small-encoder", "as-published"
KEEP = "return inpage.load(given, { keep: true })"
EMBED = "return inpage.embeddings.create({ input: given })"
CHAT = """return inpage.chat.completions.create(
  { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 2, model: given })"""


@pytest.fixture(scope="module")
def page(
    browser: Browser, toy_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiPage]:
    models = tmp_path_factory.mktemp("with_encoder")
    shutil.copytree(toy_model, models / NAME)
    (models / f"{ENCODER}.gguf").write_bytes(small_encoder())
    for name, data in small_checkpoint().items():
        path = models / CHECKPOINT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with serving("--models", str(models)) as address, opened(browser, address) as api:
        yield api


def test_texts_go_to_the_encoder_and_chats_to_the_other(page: ApiPage) -> None:
    assert not page.run("return inpage.load(given)", NAME)["is_encoder"]
    assert page.run(KEEP, ENCODER)["is_encoder"]
    found = page.run(EMBED, ["the end", "a", "the"])
    assert found["model"] == ENCODER
    vectors = np.array([each["embedding"] for each in found["data"]])
    assert vectors.shape == (3, SMALL["hidden_size"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert page.run("return inpage.loaded.name") == NAME, "it is still the one that chats"
    assert page.run(CHAT, None)["model"] == NAME
    refused = page.fails(CHAT, ENCODER)
    assert refused["code"] == "invalid_request"
    assert refused["reason"] == "encoder_cannot_write"
    assert refused["facts"] == {"name": ENCODER}
    page.run("return inpage.unload(given)", ENCODER)
    assert page.run(EMBED, ["the end"])["model"] == NAME, "the decoder's own hidden states"


def test_an_encoder_alone(page: ApiPage) -> None:
    page.run("return inpage.load(given)", ENCODER)
    assert page.run(EMBED, "the end")["model"] == ENCODER
    assert page.python("(await model.embed('the end')).shape") == [1, SMALL["hidden_size"]]
    for call in ("return inpage.verify()", "return inpage.glass('hooks')", CHAT):
        assert page.fails(call)["reason"] == "encoder_cannot_write", call
    page.run("await inpage.restart()")
    assert page.run("return inpage.loaded.name") == ENCODER


def test_a_checkpoint_as_it_is_published(page: ApiPage) -> None:
    texts = ["the end", "a", "the the the"]
    page.run("return inpage.load(given)", ENCODER)
    wanted = [each["embedding"] for each in page.run(EMBED, texts)["data"]]
    assert page.run("return inpage.load(given)", CHECKPOINT)["is_encoder"]
    found = [each["embedding"] for each in page.run(EMBED, texts)["data"]]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    query = "return inpage.embeddings.create({ input: given, prompt_name: 'query' })"
    prompted = page.run(query, "the end")["data"][0]["embedding"]
    plain = page.run(EMBED, "find the end")["data"][0]["embedding"]
    np.testing.assert_allclose(prompted, plain, atol=1e-5)


def test_a_dropped_encoder_says_what_it_is_for(page: ApiPage) -> None:
    data = list(small_encoder())
    drop = f"""const file = new File([new Uint8Array(given)], "{ENCODER}.gguf");
      return (await inpage.load([file])).about"""
    about = page.run(drop, data)
    assert "makes vectors of texts" in about
    assert "chat with it" not in about
