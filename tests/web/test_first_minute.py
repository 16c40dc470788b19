"""A first minute: open, ask, start, answer, close, come back, go on. Every wait says what for."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Route, expect

from tests.web.user import User

pytestmark = pytest.mark.browser

DOWNLOAD = re.compile(r"Start chatting \([0-9.]+ kB download\)")
WAITING = re.compile(r"Waiting for a model: press “.+ \([0-9.]+ kB .+\)”")
SHARDS = "**/models/Toy/*.safetensors"


@pytest.fixture(scope="module")
def newcomer(browser: Browser) -> Iterator[BrowserContext]:
    """Open a browser that was never here."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture(scope="module")
def visitor(newcomer: BrowserContext, toy_site_url: str) -> User:
    """Comes back, after the first minute."""
    return opened(newcomer, toy_site_url)


def opened(context: BrowserContext, url: str) -> User:
    visitor = User(context.new_page(), url)
    visitor.page.goto(url)
    visitor.has_opened()
    return visitor


def test_a_strangers_first_minute(newcomer: BrowserContext, toy_site_url: str) -> None:
    """Nothing that takes its time goes without a word on the screen."""
    visitor = opened(newcomer, toy_site_url)
    visitor.choose(max_tokens="4", temperature="0")
    expect(visitor.load_button).to_have_text(DOWNLOAD)
    assert not any("safetensors" in url for url in visitor.requests), "nothing comes unasked"
    assert visitor.faults_of_access() == []

    held: list[Route] = []
    visitor.page.route(SHARDS, lambda route: held.append(route))
    visitor.page.get_by_role("button", name="Explain why").click()  # sends it, and starts that
    expect(visitor.questions).to_have_text([re.compile("Explain why")])
    note = visitor.answers.last.locator(".note")
    expect(visitor.page.get_by_role("heading", name="Loading Toy…")).to_be_visible()
    expect(note).to_have_text("Getting ready…")
    visitor.page.get_by_role("button", name="Cancel").click()
    expect(note).to_have_text(WAITING)
    held.clear()  # nobody waits for these any more
    visitor.load_button.or_(visitor.page.get_by_role("button", name="Resume download")).click()
    expect(note).to_have_text("Getting ready…")
    for route in held:
        route.continue_()
    visitor.page.unroute(SHARDS)
    expect(note).to_contain_text("4 tokens")
    expect(visitor.stop).to_be_hidden()
    assert visitor.complaints == []
    visitor.page.close()

    visitor = opened(newcomer, toy_site_url)  # the model loads by itself
    expect(visitor.page.get_by_role("heading", name="Loading Toy…")).to_be_visible()
    expect(visitor.questions).to_have_text([re.compile("Explain why")])
    visitor.composer.fill("And now?")
    visitor.composer.press("Enter")
    expect(visitor.answers).to_have_count(2)
    expect(visitor.answers.last.locator(".note")).to_contain_text("4 tokens")
    expect(visitor.page).to_have_title(re.compile("Explain why the sky .* · inpage"))
    assert visitor.complaints == []
    visitor.page.close()


def test_a_question_that_waits_can_be_stopped(visitor: User) -> None:
    visitor.has_loaded()
    visitor.page.evaluate("inpage.unload()")
    expect(visitor.load_button).to_be_visible()
    visitor.page.evaluate("() => { inpage.load = () => Promise.reject(new Error('not now')); }")
    visitor.composer.fill("Never mind")
    visitor.composer.press("Enter")
    expect(visitor.answers.last.locator(".note")).to_contain_text("Waiting for a model")
    visitor.stop.click()
    expect(visitor.answers.last.locator(".note")).to_have_text("Stopped")
    expect(visitor.stop).to_be_hidden()
    assert visitor.complaints == []


def test_a_script_that_loads_a_model_is_not_displaced_by_the_stored_one(visitor: User) -> None:
    visitor.page.add_init_script(
        """
        globalThis.addEventListener("DOMContentLoaded", async () => {
            while (!globalThis.inpage) await new Promise((resolve) => setTimeout(resolve));
            await inpage.ready;
            globalThis.own = inpage.load("Toy", {kernels: "portable"}).then(
                ({kernels}) => kernels.name, ({code}) => code);
        });
        """
    )
    visitor.page.goto(visitor.url)
    visitor.has_opened()
    found = visitor.page.evaluate(
        """async () => {
            while (!globalThis.own) await new Promise((resolve) => setTimeout(resolve, 10));
            const kernels = await own;
            while (inpage.loads) await new Promise((resolve) => setTimeout(resolve, 10));
            return [kernels, inpage.loaded.kernels.chosen];
        }"""
    )
    assert found == ["portable", "asked for"]
