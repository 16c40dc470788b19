"""A few steps of chaos at every run; `make chaos` takes as many as there is time for."""

import pytest
from playwright.sync_api import Browser

from tests.web.chaos import run_chaos

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


def test_nothing_is_lost_and_nothing_hangs(browser: Browser, gpu_toy_site_url: str) -> None:
    chaos = run_chaos(browser, gpu_toy_site_url, seed=7, steps=24)
    assert chaos.saved, "somebody asked something"
