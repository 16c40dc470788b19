"""A Firefox, and the toy's page in it, for the whole folder, which has one file of tests."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import serving
from tests.firefox.marionette import Firefox
from tests.runners import ShippingRunner
from tests.toy_model import NAME


class Site(ShippingRunner):
    """The page with the toy as its only model, in Firefox."""

    name = "firefox"

    def __init__(self, firefox: Firefox, models: Path) -> None:
        super().__init__()
        self.firefox = firefox
        self._server = ExitStack()
        self.url = self._server.enter_context(serving("--models", str(models), device="gpu"))

    def python(self, code: str) -> Any:
        return self.firefox.run("return inpage.python(given)", code)

    def stop_serving(self) -> None:
        self._server.close()


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    firefox = Firefox(tmp_path_factory.mktemp("firefox"))
    yield firefox
    firefox.close()


@pytest.fixture(scope="module")
def started(firefox: Firefox, toy_model: Path) -> Iterator[Site]:
    """Start the page; its Python runs, and no model is loaded."""
    site = Site(firefox, toy_model.parent)
    firefox.go(site.url)
    firefox.run("await inpage.ready")
    site.compile_sooner()  # on some machines the driver takes minutes for a kernel
    yield site
    site.stop_serving()


@pytest.fixture(scope="module")
def site(started: Site) -> Site:
    """Load the toy by the page's own button; the browser keeps it."""
    started.firefox.until("!document.querySelector('#load').disabled")
    started.firefox.click("#load")
    started.firefox.until("document.body.dataset.model === 'ready'")
    assert started.firefox.run("return inpage.loaded.name") == NAME
    return started
