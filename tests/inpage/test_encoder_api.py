"""`inpage api` with a text encoder, asked by OpenAI's own client."""

import sys
from collections.abc import Iterator

import numpy as np
import openai
import pytest

from tests.conftest import first_line, running
from tests.encoder.gguf_files import SMALL, small_encoder
from tools.files import ROOT

pytestmark = pytest.mark.gpu

NAME = "small-encoder"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    model = tmp_path_factory.mktemp("models") / f"{NAME}.gguf"
    model.write_bytes(small_encoder())
    command = [sys.executable, "-m", "inpage", "api", str(model), "--port", "0"]
    with running(command, cwd=ROOT) as process:
        line = first_line(process)
        assert line.startswith("inpage is at http://127.0.0.1:"), line
        address = line.removeprefix("inpage is at ")
        yield openai.OpenAI(base_url=address, api_key="none", max_retries=0)


def test_vectors_of_texts(client: openai.OpenAI) -> None:
    texts = ["the end", "a", "the the the"]
    found = client.embeddings.create(model=NAME, input=texts)
    vectors = np.array([each.embedding for each in found.data])
    assert vectors.shape == (3, SMALL["hidden_size"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    alone = client.embeddings.create(model=NAME, input=texts[2]).data[0].embedding
    np.testing.assert_allclose(alone, vectors[2], atol=1e-5)


def test_a_chat_is_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match=f"{NAME} is a text encoder: it makes vectors"):
        client.chat.completions.create(model=NAME, messages=[{"role": "user", "content": "Hi"}])
