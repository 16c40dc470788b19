"""The toy model where it can be loaded: natively from its folder, in a page from its site."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.runners import PageRunner, Runner
from tests.toy_model import NAME


@dataclass(frozen=True)
class Toy:
    runner: Runner
    where: str


@pytest.fixture(scope="session")
def toy_page(browser: Browser, toy_site_url: str) -> Iterator[PageRunner]:
    page = browser.new_page()
    page.goto(toy_site_url)
    page.evaluate("inpage.ready.then(() => null)")
    yield PageRunner(page)
    page.close()


@pytest.fixture(params=["native", pytest.param("page", marks=pytest.mark.browser)])
def toy(request: pytest.FixtureRequest, toy_model: Path) -> Toy:
    """The test runs twice: natively and in the page."""
    if request.param == "native":
        return Toy(request.getfixturevalue("native"), str(toy_model))
    address = request.getfixturevalue("toy_site_url")
    return Toy(request.getfixturevalue("toy_page"), f"{address}models/{NAME}/")
