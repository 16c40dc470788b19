"""A started page with the toy loaded, for the tests of a module to share."""

from collections.abc import Iterator
from threading import Thread

import pytest
from playwright.sync_api import Browser

from tests.web.user import Desk, User
from tests.web.ways_out import Host


@pytest.fixture(scope="module")
def fresh(browser: Browser, toy_site_url: str) -> Iterator[User]:
    """Open a page of its own, with nothing loaded."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    user = User(context.new_page(), toy_site_url)
    user.open()
    yield user
    context.close()


@pytest.fixture(scope="module")
def user(fresh: User) -> User:
    """Load the toy in that page; it gives short answers."""
    fresh.load()
    fresh.talk_on()
    fresh.prefer(max_tokens="16", temperature="0")
    return fresh


@pytest.fixture(scope="module")
def desks(browser: Browser, toy_site_url: str) -> Iterator[list[Desk]]:
    """Keep the desk in use, if any."""
    desks: list[Desk] = []
    yield desks
    for desk in desks:
        desk.context.close()


@pytest.fixture
def desk(browser: Browser, toy_site_url: str, desks: list[Desk]) -> Iterator[Desk]:
    """Return a desk that the test before cleared, or another one if it failed to."""
    desk = desks.pop() if desks else Desk(browser, toy_site_url)
    yield desk
    desk.clear()
    desks.append(desk)


@pytest.fixture(scope="module")
def open_desk(browser: Browser, toy_site_url: str) -> Iterator[Desk]:
    """Return a desk that nobody clears, for tests that share a tab."""
    desk = Desk(browser, toy_site_url)
    yield desk
    desk.context.close()


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as host:
        Thread(target=host.serve_forever, daemon=True).start()
        yield host
        host.shutdown()
