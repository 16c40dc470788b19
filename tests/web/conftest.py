"""One started page with the toy loaded, for the tests of a module to share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.web.user import Desk, User


@pytest.fixture(scope="module")
def fresh(browser: Browser, toy_site_url: str) -> Iterator[User]:
    """A page of its own, open, with nothing loaded."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    user = User(context.new_page(), toy_site_url)
    user.open()
    yield user
    context.close()


@pytest.fixture(scope="module")
def user(fresh: User) -> User:
    """The same with the toy loaded, giving short answers."""
    fresh.load()
    fresh.talk_on()
    fresh.choose(max_tokens="16", temperature="0")
    return fresh


@pytest.fixture(scope="module")
def desks(browser: Browser, toy_site_url: str) -> Iterator[list[Desk]]:
    """The one in use, if any."""
    desks: list[Desk] = []
    yield desks
    for desk in desks:
        desk.context.close()


@pytest.fixture
def desk(browser: Browser, toy_site_url: str, desks: list[Desk]) -> Iterator[Desk]:
    """Cleared by the test before; after one that failed to, there is another."""
    desk = desks.pop() if desks else Desk(browser, toy_site_url)
    yield desk
    desk.clear()
    desks.append(desk)
