"""The order of tests that notices a changed line soonest: a plugin of pytest, for tools.mutants.

A first run writes down which functions of py_runtime each test calls, and how long it takes
(`NEAREST_CALLS` names the file). With `NEAREST_TO=FILE:LINE`, a function's first line, later runs
begin with the tests that call it, the quickest first; all others follow as they would.
"""

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

CALLS, CHANGED = "NEAREST_CALLS", "NEAREST_TO"


def pytest_configure(config: pytest.Config) -> None:
    """The first run, or a later one."""
    calls = Path(os.environ[CALLS])
    if changed := os.environ.get(CHANGED):
        config.pluginmanager.register(NearestFirst(changed, json.loads(calls.read_text())))
    else:
        config.pluginmanager.register(Recorder(config.rootpath, calls))


class NearestFirst:
    """Tests that call the changed function, then the others."""

    def __init__(self, changed: str, tests: dict[str, dict[str, Any]]) -> None:
        near = {test: seen for test, seen in tests.items() if changed in seen["calls"]}
        self._near = sorted(near, key=lambda test: near[test]["seconds"])

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        place = {test: place for place, test in enumerate(self._near)}
        items.sort(key=lambda item: place.get(item.nodeid, len(place)))


class Recorder:
    """Asks Python itself who is called; what a shared fixture calls, all its users call."""

    def __init__(self, root: Path, written: Path) -> None:
        self._root, self._written = f"{root}{os.sep}", written
        self._by_fixture: dict[str, set[str]] = defaultdict(set)
        self._tests: dict[str, dict[str, Any]] = {}
        self._called: set[CodeType] = set()
        threading.settrace(self._note)
        sys.settrace(self._note)

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
