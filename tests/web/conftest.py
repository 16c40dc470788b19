"""One started page with the toy loaded, for the tests of a module to share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.web.user import Reader


@pytest.fixture(scope="module")
def fresh(browser: Browser, toy_site_url: str) -> Iterator[Reader]:
    """A page of its own, open, with nothing loaded."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    reader = Reader(context.new_page(), toy_site_url)
    reader.open()
    yield reader
    context.close()


@pytest.fixture(scope="module")
def reader(fresh: Reader) -> Reader:
    """The same with the toy loaded, giving short answers."""
    fresh.load()
    fresh.talk_on()
    fresh.choose(max_tokens="16", temperature="0")
    return fresh
