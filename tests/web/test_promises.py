"""README.md's promises of the page as a whole: nothing leaves, and it works offline.

The others have their tests elsewhere. Stop: tests/app/test_completions.py (prompt, answer, schema),
test_models.py (load, warm-up) and test_device_loss.py (lost devices, Verify) there, and
tests/web/test_hangs.py (template). Chats that stay: test_history.py; a second visit:
tests/folder/test_loading.py; lost devices: tests/app/test_device_loss.py; Verify:
tests/model/test_verify.py.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Request, expect

from tests.conftest import serving
from tests.web.user import User

pytestmark = pytest.mark.browser

# Ways out that are no requests as Playwright sees them.
OTHER_WAYS = """
globalThis.waysOut = [];
for (const name of ["RTCPeerConnection", "WebSocket", "WebTransport", "EventSource"]) {
  globalThis[name] = class { constructor(...given) { waysOut.push([name, ...given].join(" ")); } };
}
navigator.sendBeacon = (...given) => Boolean(waysOut.push(["sendBeacon", ...given].join(" ")));
"""
SECRET = "zebra"


class Watched(User):
    """A user whose requests are kept, those of workers as well."""

    def __init__(self, browser: Browser, url: str) -> None:
        context = browser.new_context()
        context.add_init_script(OTHER_WAYS)
        self.sent: list[Request] = []
        context.on("request", lambda request: self.sent.append(request))
        super().__init__(context.new_page(), url)


@pytest.fixture(scope="module")
def watched(browser: Browser, toy_site_url: str) -> Iterator[Watched]:
    """Load the toy, chat, ask by the API and verify."""
    user = Watched(browser, toy_site_url)
    user.open()
    user.load()
    user.choose(max_tokens="16", temperature="0")
    user.ask(f"Tell nobody about the {SECRET}")
    user.page.evaluate(f"inpage.completions.create({{ prompt: '{SECRET}', max_tokens: 4 }})")
    assert user.page.evaluate("inpage.verify()")["ok"]
    yield user
    user.page.context.close()


def test_nothing_leaves(watched: Watched, toy_site_url: str) -> None:
    watched.page.reload()  # what is kept until the end of a visit
    expect(watched.questions).to_contain_text(SECRET)
    fetched = [request.url for request in watched.sent if not request.url.startswith("blob:")]
    assert any(url.endswith("manifest.json") for url in fetched), "workers are heard"
    assert [url for url in fetched if not url.startswith(toy_site_url)] == []
    assert {request.method for request in watched.sent} == {"GET"}
    assert not any(request.post_data for request in watched.sent)
    assert not any(SECRET in f"{request.url} {request.headers}" for request in watched.sent)
    assert watched.page.evaluate("waysOut") == []


def test_a_page_that_is_open_needs_no_network(watched: Watched) -> None:
    watched.has_loaded()
    watched.page.context.set_offline(True)
    watched.new_chat()
    answer = watched.ask("Still there?")
    assert not answer.locator(".error").is_visible()
    assert answer.inner_text().strip()
    assert watched.page.evaluate("inpage.verify()")["ok"]
    watched.page.evaluate("inpage.python('device.destroy()').catch(() => {})")
    assert not watched.ask("And now?").locator(".error").is_visible()
    watched.page.context.set_offline(False)


@pytest.mark.thorough  # web/test_offline.py has each part of it
def test_a_page_that_was_visited_works_offline(browser: Browser, toy_model: Path) -> None:
    """The server is stopped: the page, Python, the libraries and the model are in the browser."""
    context = browser.new_context(service_workers="allow")
    page = context.new_page()
    with serving("--models", str(toy_model.parent)) as address:
        user = User(page, address)
        user.open()
        user.load()
        user.choose(max_tokens="8", temperature="0")
        answer = user.text_of(user.ask("Before"))
        expect(page.locator("body")).to_have_attribute("data-kept", re.compile("."))
    page.goto("about:blank")
    page.goto(address)
    expect(user.questions).to_have_text(["Before"])
    user.has_loaded()  # by itself: it is kept
    assert page.evaluate("crossOriginIsolated")
    user.new_chat()
    assert user.text_of(user.ask("Before")) == answer
    page.get_by_role("button", name="Python").click()  # what was never opened before
    expect(page.get_by_role("textbox", name="Code")).to_be_visible()
    page.get_by_role("button", name="Close the panel").click()
    user.import_chats({"messages": [{"role": "assistant", "content": "$x$"}]})
    expect(user.answers.locator("[data-drawn]")).to_have_count(1)
    assert user.complaints == []
    context.close()
