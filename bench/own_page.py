"""The page of this engine on the CPU, in a browser of its own, without its peers."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

from bench.browser import FLAGS
from bench.server import serving
from tools import browser


@contextmanager
def own_page() -> Iterator[Page]:
    """Open the page, and wait until its engine is ready."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        serving(with_peers=False) as address,
        sync_playwright() as playwright,
    ):
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=browser.find(),
            headless=True,
            args=[*browser.launch_flags(), *FLAGS],
        )
        page = context.pages[0]
        page.goto(f"{address}?device=cpu")
        page.wait_for_function("() => globalThis.inpage")
        page.evaluate("inpage.ready.then(() => null)")
        yield page
        context.close()
