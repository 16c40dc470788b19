"""Two tabs and one model: the second one uses the engine of the first, and goes on without it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.web.user import User

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    yield context
    context.close()


def test_a_second_tab_uses_the_model_of_the_first(
    context: BrowserContext, toy_site_url: str
) -> None:
    first = User(context.new_page(), toy_site_url)
    first.open()
    first.choose(max_tokens="4", temperature="0")
    first.load()
    own = first.text_of(first.ask("Who answers?"))

    second = User(context.new_page(), toy_site_url)
    second.page.goto(toy_site_url)
    second.has_opened()
    offer = second.page.get_by_role("button", name="Use the other tab's model")
    expect(second.page.get_by_role("heading", name="Toy is loaded in another tab")).to_be_visible()
    assert second.faults_of_access() == []
    offer.click()
    second.has_loaded()
    second.new_chat()
    assert second.text_of(second.ask("Who answers?")) == own
    first.page.evaluate("inpage.python('shared = 41')")
    assert second.page.evaluate("inpage.python('shared + 1')") == 42

    first.page.close()
    expect(second.notices).to_contain_text("is closed: the model is now loaded in this tab")
    second.has_loaded()
    second.new_chat()
    assert second.text_of(second.ask("Who answers?")) == own
    assert second.complaints == []
