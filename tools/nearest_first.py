"""The order of tests that notices a changed line soonest: a plugin of pytest, for tools.mutants.

A first run writes down which functions of py_runtime each test calls, and how long it takes
(`NEAREST_CALLS` names the file). Later runs begin with the tests that call the changed function,
the quickest first; then come those that call others of its file, because a function's result may be
kept. The rest cannot notice, and is left out (`NEAREST_ORDER` names a file with tests to run).
"""

import json
import os
import resource
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

CALLS, ORDER = "NEAREST_CALLS", "NEAREST_ORDER"
MEMORY = 4 << 30  # bytes: several times what tests take, and a change may run away

Calls = dict[str, dict[str, Any]]  # by test


def nearest(changed: str, tests: Calls) -> list[str]:
    """Return the tests that call the changed function, then those that call its file."""
    file = changed.partition(":")[0]
    near = [test for test in tests if file in tests[test]["calls"]]
    near.sort(key=lambda test: (changed not in tests[test]["calls"], tests[test]["seconds"]))
    return near


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin of the first run, or of a later one."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    if order := os.environ.get(ORDER):
        config.pluginmanager.register(InOrder(json.loads(Path(order).read_text())))
    else:
        config.pluginmanager.register(Recorder(config.rootpath, Path(os.environ[CALLS])))


class InOrder:
    """A plugin that runs these tests, and no others."""

    def __init__(self, tests: list[str]) -> None:
        self._place = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._place]
        items.sort(key=lambda item: self._place[item.nodeid])


class Recorder:
    """A plugin that asks Python what is called; what a shared fixture calls, all its users call."""

    def __init__(self, root: Path, written: Path) -> None:
        self._root, self._written = f"{root}{os.sep}", written
        self._by_fixture: dict[str, set[str]] = defaultdict(set)
        self._tests: Calls = {}
        self._called: set[CodeType] = set()
        threading.settrace(self._note)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        self._called.add(frame.f_code)  # and no return value: lines are not asked for

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        before, self._called = self._called, set()
        try:
            return (yield)
        finally:
            self._by_fixture[fixturedef.argname] |= self._places()
            self._called = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._called, started = set(), time.monotonic()
        sys.settrace(self._note)  # anew: a recursion that ends within _note takes it away
        result = yield
        calls = self._places()
        for fixture in getattr(item, "fixturenames", ()):
            calls |= self._by_fixture[fixture]
        seconds = time.monotonic() - started
        self._tests[item.nodeid] = {"seconds": seconds, "calls": sorted(calls)}
        return result

    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)
        threading.settrace(None)
        self._written.write_text(json.dumps(self._tests))

    def _places(self) -> set[str]:
        """FILE:LINE of each function, and FILE alone, for what no function holds."""
        own = {code for code in list(self._called) if code.co_filename.startswith(self._root)}
        files = {code: code.co_filename.removeprefix(self._root) for code in own}
        lines = {f"{file}:{code.co_firstlineno}" for code, file in files.items()}
        return lines | set(files.values())
