"""Second tries for a short list of tests, and bounds on what a page may take.

A test of the list that fails is tried once more, in a browser of its own. Both tries are in the
summary (`-rR`): the first is a fault to fix. The list may only shrink; a test checks its length.

A page may not answer at all, and nothing bounds what a test asks of it (`page.evaluate`): a test in
the browser ends in half the time that other tests have, unless it says otherwise.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

BROWSERS = ("browser", "shared_browser", "firefox")  # fixtures
SECONDS = 300  # several times what the longest test takes
# Files whose tests race against several tabs or processes on two cores.
TRIED_TWICE = (
    "tests/firefox/test_firefox.py",
    "tests/reach/test_shared_engine.py",
    "tests/web/test_chaos.py",
    "tests/web/test_hangs.py",
    "tests/web/test_shared_tab.py",
    "tests/web/test_tabs.py",
)


class SecondTries:
    """A plugin of pytest. A second try has a new browser: tests may share a page that broke."""

    def __init__(self, tried_twice: tuple[str, ...] = TRIED_TWICE) -> None:
        self._tried_twice = tried_twice
        self._end: dict[Any, Callable[[], None]] = {}  # by fixture

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if item.get_closest_marker("browser"):
                if item.nodeid.startswith(self._tried_twice):
                    item.add_marker(pytest.mark.flaky(reruns=1))
                if not item.get_closest_marker("timeout"):
                    item.add_marker(pytest.mark.timeout(SECONDS))

    def pytest_fixture_setup(self, fixturedef: Any, request: pytest.FixtureRequest) -> None:
        if fixturedef.argname in BROWSERS:
            self._end[fixturedef] = partial(fixturedef.finish, request)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """End the browser before a second try; its pages and fixtures built on it end with it."""
        if getattr(item, "execution_count", 1) > 1:
            for end in self._end.values():
                with suppress(Exception):  # it may have crashed
                    end()
