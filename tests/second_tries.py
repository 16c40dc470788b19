"""Second tries of tests in the browser: two pages share two cores with whatever else runs there.

Both tries are in the summary (`-rR`): the first is a fault to mend.

A page may also not answer at all, and nothing bounds what a test asks of it (`page.evaluate`): each
try ends in half the time that other tests have, unless the test says otherwise.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

BROWSERS = ("browser", "shared_browser", "firefox")  # fixtures
SECONDS = 300  # several times what the longest test takes


class SecondTries:
    """Each has a browser of its own: what failed may be a page that many tests share."""

    def __init__(self) -> None:
        self._end: dict[Any, Callable[[], None]] = {}  # by fixture

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.flaky(reruns=1))
                if not item.get_closest_marker("timeout"):
                    item.add_marker(pytest.mark.timeout(SECONDS))

    def pytest_fixture_setup(self, fixturedef: Any, request: pytest.FixtureRequest) -> None:
        if fixturedef.argname in BROWSERS:
            self._end[fixturedef] = partial(fixturedef.finish, request)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """End the browsers of the first try, and so their pages and all fixtures on them."""
        if getattr(item, "execution_count", 1) > 1:
            for end in self._end.values():
                with suppress(Exception):  # it may have crashed
                    end()
