"""A page with the toy model, driven through `globalThis.inpage` as any script in it would."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.toy_model import NAME

# Runs the body of an async function of (inpage, given); errors come back as plain objects.
SCRIPT = """async (given) => {
  const plain = (error) => ({ ...error, message: error.message, isError: error instanceof Error });
  const body = async () => { BODY };
  return body().then((value) => ({ value }), (error) => ({ error: plain(error) }));
}"""


class ApiPage:
    def __init__(self, page: Page) -> None:
        self.page = page

    def run(self, body: str, given: Any = None) -> Any:
        outcome = self.page.evaluate(SCRIPT.replace("BODY", body), given)
        assert "error" not in outcome, outcome["error"]
        return outcome.get("value")

    def fails(self, body: str, given: Any = None) -> dict[str, Any]:
        """Return the error; it is an Error, and says something."""
        outcome = self.page.evaluate(SCRIPT.replace("BODY", body), given)
        assert "error" in outcome, outcome
        error: dict[str, Any] = outcome["error"]
        assert error["isError"]
        assert error["message"]
        return error

    def python(self, code: str) -> Any:
        return self.run("return inpage.python(given)", code)


@contextmanager
def opened(browser: Browser, address: str) -> Iterator[ApiPage]:
    page = browser.new_page()
    page.goto(address)
    api = ApiPage(page)
    api.run("await inpage.ready")
    yield api
    page.close()


# Not of the package: its files take turns with others, and each would start a page of its own.
@pytest.fixture(scope="session")
def started(browser: Browser, toy_site_url: str) -> Iterator[ApiPage]:
    with opened(browser, toy_site_url) as api:
        yield api


@pytest.fixture
def api(started: ApiPage) -> ApiPage:
    """Load the toy; nothing of it is in the cache."""
    started.run(f"if (inpage.loaded?.name !== '{NAME}') await inpage.load('{NAME}')")
    started.python("await engine.loaded.last.warming; engine.model.session.forget()")
    return started


@pytest.fixture
def gpu_api(browser: Browser, gpu_toy_site_url: str) -> Iterator[ApiPage]:
    """Load the toy on the GPU, in a page of its own."""
    with opened(browser, gpu_toy_site_url) as api:
        api.run(f"await inpage.load('{NAME}')")
        yield api


@pytest.fixture
def slow(api: ApiPage) -> ApiPage:
    """Chunks so short that a prompt takes several, however fast the machine is."""
    api.python(
        """
class Fixed(type(model.session._pace)):
    def took(self, tokens, seconds): pass
    def next_chunk(self): return 16
model.session._pace = Fixed(16)
"""
    )
    return api
