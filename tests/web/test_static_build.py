"""The static build in a subfolder of a plain file server: a service worker isolates it."""

import pytest
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser


def test_the_static_build_starts_isolated(browser: Browser, static_site_url: str) -> None:
    context = browser.new_context(service_workers="allow")
    page = context.new_page()
    outside = []
    page.on(
        "request",
        lambda r: outside.append(r.url) if not r.url.startswith(static_site_url) else None,
    )
    page.goto(static_site_url)
    expect(page.locator("#status")).to_contain_text("Ready in")
    assert page.evaluate("crossOriginIsolated") is True
    assert page.evaluate("inpage.python('1 + 1')") == 2
    assert outside == []
    context.close()
