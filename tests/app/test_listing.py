"""models.json with faults: each model is listed, or named with its fault."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from py_runtime.app.listing import parse_listing
from py_runtime.base.errors import NetworkError
from tests.app.conftest import ApiPage
from tests.conftest import serving

ODD = "50% of a #1? Größe"
GOOD = {"name": "good", "path": "models/good/", "size": 1, "quantisation": "q4"}

ENTRIES: list[tuple[Any, str, str]] = [
    (7, "models.json[1]", "models.json[1] must be an object, got 7"),
    ({}, "models.json[1]", "models.json[1].name must be a text, got None"),
    ({"name": ""}, "models.json[1]", "models.json[1].name must be a text, got ''"),
    ({"name": 5}, "models.json[1]", "models.json[1].name must be a text, got 5"),
    ({"name": "x"}, "x", "models.json[1].path must be a text, got None"),
    ({**GOOD, "name": "x", "size": "big"}, "x", "models.json[1].size must be a count, got 'big'"),
    ({**GOOD, "name": "x", "context": -1}, "x", "models.json[1].context must be a count, got -1"),
    ({**GOOD, "name": "x", "error": "torn"}, "x", "torn"),
    ({**GOOD, "name": "x", "error": None}, "x", "None"),
]


@pytest.mark.parametrize(("entry", "name", "error"), ENTRIES)
def test_an_entry_with_a_fault_hides_no_other(entry: Any, name: str, error: str) -> None:
    first, faulty, last = parse_listing(json.dumps([GOOD, entry, GOOD]).encode())
    assert first == last == GOOD
    assert (faulty["name"], faulty["error"]) == (name, error)
    assert faulty.keys() == {"name", "path", "error"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<!doctype html><title>Not found</title>", "models.json is not JSON"),
        (b"", "models.json is not JSON"),
        (b"[" * 100_000, "models.json is not JSON .it is nested too deeply"),
        (b"\xff", "models.json is not JSON .byte 0 is not UTF-8"),
        (b'{"models": []}', "models.json must be a list"),
    ],
)
def test_another_file_in_its_place(data: bytes, words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        parse_listing(data)


# ---- in the page


@pytest.fixture(scope="module")
def faulty(
    browser: Browser, toy_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiPage]:
    """Open a page of a site with a good model under an odd name, and a torn one."""
    models = tmp_path_factory.mktemp("faulty")
    shutil.copytree(toy_model, models / ODD)
    (models / "Torn").mkdir()
    (models / "Torn" / "manifest.json").write_text("{")
    with serving("--models", str(models)) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        api = ApiPage(page)
        api.run("await inpage.ready")
        expect(page.locator("#model option")).to_have_count(2)
        yield api
        context.close()


@pytest.fixture
def answered_by(faulty: ApiPage) -> Iterator[Any]:
    """Return a function that opens the page with such an answer for models.json."""

    def answer(**answer: Any) -> ApiPage:
        def fulfil(route: Route) -> None:
            route.fulfill(**answer)

        faulty.page.route("**/models.json", fulfil)
        return faulty

    yield answer
    faulty.page.unroute("**/models.json")


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"body": "<!doctype html>", "content_type": "text/html"}, "models.json is not JSON"),
    ({"status": 500, "body": "no"}, "answered 500"),
]


@pytest.mark.browser
@pytest.mark.parametrize(("answer", "words"), BROKEN)
def test_a_broken_list_says_so(answered_by: Any, answer: dict[str, Any], words: str) -> None:
    error = answered_by(**answer).fails("return inpage.models()")
    assert error["code"] == "network_error"
    assert words in error["message"]


@pytest.mark.browser
@pytest.mark.parametrize(("answer", "words"), BROKEN)
def test_a_page_without_its_list_says_why(
    browser: Browser, toy_site_url: str, answer: dict[str, Any], words: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/models.json", lambda route: route.fulfill(**answer))
    page.goto(toy_site_url)
    facts = page.locator("#modelFacts")
    expect(facts).to_contain_text("The models of this site could not be listed")
    expect(facts).to_contain_text(words)
    expect(page.locator("#load")).to_be_disabled()
    context.close()


@pytest.mark.browser
def test_a_torn_model_is_named_with_its_fault(faulty: ApiPage) -> None:
    odd, torn = faulty.run("return inpage.models()")
    assert (odd["name"], odd["stored"], "error" in odd) == (ODD, False, False)
    assert torn["name"] == "Torn"
    assert torn["facts"].startswith("Cannot be loaded: manifest.json is not JSON")
    error = faulty.fails("return inpage.load('Torn')")
    assert error["message"].startswith("Torn cannot be loaded: manifest.json is not JSON")
    faulty.page.locator("#model").select_option(label="Torn")
    expect(faulty.page.locator("#load")).to_be_disabled()
    expect(faulty.page.locator("#modelFacts")).to_contain_text("Cannot be loaded: manifest.json is")


@pytest.mark.browser
def test_any_name_loads_is_kept_and_outlives_the_list(faulty: ApiPage, answered_by: Any) -> None:
    faulty.run("await inpage.load(given)", ODD)
    odd, _ = faulty.run("return inpage.models()")
    assert odd["stored"]
    faulty.run("globalThis.told = []; inpage.onNotice(({ text }) => told.push(text))")
    for answer, words in BROKEN:
        (kept,) = answered_by(**answer).run("return inpage.models()")
        assert kept["stored"]
        assert words in faulty.run("return told.at(-1)")
