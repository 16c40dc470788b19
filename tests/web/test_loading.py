"""Loading a model: asked for, shown, cancelled, failed, kept, deleted."""

import pytest
from playwright.sync_api import expect

from tests.web.user import User

pytestmark = pytest.mark.browser

SHARDS = "**/models/Toy/*.safetensors"


def test_nothing_of_a_model_is_fetched_before_load(fresh: User) -> None:
    loader = fresh.page.get_by_role("region", name="Choose a model")
    for words in ("Toy", "small and fast", "kB", "remembers about 380 words", "nothing leaves"):
        expect(loader).to_contain_text(words)
    assert not any("safetensors" in url for url in fresh.requests)


def test_a_server_error_is_told_and_load_tries_again(fresh: User) -> None:
    fresh.page.route(SHARDS, lambda route: route.fulfill(status=500, body="broken"))
    fresh.load_button.click()
    error = fresh.page.get_by_role("alert").filter(has_text="could not be loaded")
    expect(error).to_contain_text("500")
    expect(error).to_contain_text("Trying again resumes the download")
    expect(fresh.load_button).to_be_focused()
    fresh.page.unroute(SHARDS)


def test_cancelling(fresh: User) -> None:
    fresh.page.route(SHARDS, lambda route: None)  # no answer ever comes
    fresh.load_button.click()
    expect(fresh.page.locator("#steps")).to_contain_text("Download")
    expect(fresh.page.get_by_role("progressbar")).to_be_visible()
    fresh.page.get_by_role("button", name="Cancel").click()
    expect(fresh.page.get_by_role("alert").filter(has_text="Cancelled")).to_be_visible()
    expect(fresh.load_button).to_be_focused()
    fresh.page.unroute(SHARDS)


def test_a_loaded_model_is_listed_and_can_be_deleted(fresh: User) -> None:
    fresh.composer.fill("My question")
    fresh.load()
    expect(fresh.composer).to_have_value("My question")
    expect(fresh.composer).to_be_focused()
    fresh.page.locator("#modelChip").click()
    dialog = fresh.page.get_by_role("dialog", name="Models")
    expect(dialog.locator("#loadedPlain")).to_contain_text("· stored in this browser")
    expect(dialog.locator("#modelRows li")).to_have_count(0)  # it is listed once
    dialog.get_by_role("button", name="Unload").click()
    expect(fresh.load_button).to_have_text("Start chatting")
    before = len(fresh.requests)
    fresh.load()
    assert not any("safetensors" in url for url in fresh.requests[before:])
    fresh.page.locator("#modelChip").click()
    dialog.get_by_role("button", name="Delete Toy").click()
    dialog.get_by_role("button", name="Keep Toy").click()
    fresh.page.keyboard.press("Escape")
    assert len(fresh.page.evaluate("inpage.stored()")) == 1
    fresh.page.locator("#modelChip").click()
    dialog.get_by_role("button", name="Delete Toy").click()
    fresh.page.keyboard.press("Escape")
    fresh.page.locator("#modelChip").click()
    expect(dialog.locator("#loadedPlain")).to_contain_text("not stored in this browser")
    fresh.page.keyboard.press("Escape")
    assert fresh.complaints == []


def test_full_storage_is_told_and_the_model_works(fresh: User) -> None:
    """Nothing is stored, after the deletion above or in a fresh page, and nothing can be."""
    if fresh.page.evaluate("inpage.loaded"):
        fresh.page.evaluate("inpage.unload().then(() => null)")
    assert fresh.page.evaluate("inpage.stored()") == []
    fresh.page.evaluate(
        "code => inpage.python(code)",
        """
import js
from pyodide.ffi import create_proxy, to_js

async def estimate(*_):
    return to_js({"quota": 50_000, "usage": 0}, dict_converter=js.Object.fromEntries)

js.StorageManager.prototype.estimate = create_proxy(estimate)
None
""",
    )
    fresh.load()
    expect(fresh.notices).to_contain_text("the model stays in memory")
    fresh.choose(max_tokens="4", temperature="0")
    expect(fresh.ask("Still there?").locator(".note")).to_contain_text("4 tokens")
    assert fresh.page.evaluate("inpage.stored()") == []


def test_the_page_follows_a_script_that_loads_and_unloads(fresh: User) -> None:
    if not fresh.page.evaluate("inpage.loaded"):  # the test above leaves it so
        fresh.load()
    chip = fresh.page.locator("#modelChip")
    expect(chip).to_contain_text("Toy")
    fresh.page.evaluate("() => inpage.unload()")
    expect(fresh.load_button).to_be_visible()
    expect(chip).to_contain_text("No model")
    fresh.page.evaluate("() => inpage.load('Toy').then(() => null)")
    expect(fresh.load_button).to_be_hidden()
    expect(chip).to_contain_text("Toy")
