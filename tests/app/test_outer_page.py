"""The models that somebody else's page may load, and what they are called."""

import json

import pytest

from py_runtime.app.outer_page import OuterPage, name_of

PAGE = "https://page.example/shop/index.html"
MODELS = [
    "https://models.example/Toy/",
    "hf:owner/name-GGUF/name-Q4_K_M.gguf",
    "https://x/a%20b.pte",
]


@pytest.fixture
def outer_page() -> OuterPage:
    return OuterPage.from_json(json.dumps({"page": PAGE, "models": MODELS, "storage": True}))


def test_models_are_called_by_the_last_part_of_their_address(outer_page: OuterPage) -> None:
    names = [row["name"] for row in outer_page.listed()]
    assert names == ["Toy", "name-Q4_K_M", "a b"]
    assert [row["path"] for row in outer_page.listed()] == MODELS
    assert name_of("https://models.example/Toy") == "Toy"


def test_others_come_from_the_pages_own_origin(outer_page: OuterPage) -> None:
    assert outer_page.allows("https://page.example/models/Other/")
    for other in (
        "https://models.example/Other/",
        "http://page.example/a/",
        "https://page.example:8/",
    ):
        assert not outer_page.allows(other)
