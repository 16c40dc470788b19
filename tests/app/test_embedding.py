"""What somebody else's page may load, and what its models are called."""

import json

import pytest

from py_runtime.app.embedding import Embedding, name_of

PAGE = "https://page.example/shop/index.html"
MODELS = [
    "https://models.example/Toy/",
    "hf:owner/name-GGUF/name-Q4_K_M.gguf",
    "https://x/a%20b.pte",
]


@pytest.fixture
def embedding() -> Embedding:
    return Embedding.from_json(json.dumps({"page": PAGE, "models": MODELS, "storage": True}))


def test_models_are_called_by_the_last_part_of_their_address(embedding: Embedding) -> None:
    names = [row["name"] for row in embedding.listed()]
    assert names == ["Toy", "name-Q4_K_M", "a b"]
    assert [row["path"] for row in embedding.listed()] == MODELS
    assert name_of("https://models.example/Toy") == "Toy"


def test_others_come_from_the_pages_own_origin(embedding: Embedding) -> None:
    assert embedding.allows("https://page.example/models/Other/")
    for other in (
        "https://models.example/Other/",
        "http://page.example/a/",
        "https://page.example:8/",
    ):
        assert not embedding.allows(other)
