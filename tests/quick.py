"""The tests of `make check`, a plugin: what needs no browser, no GPU, no model and no PyTorch.

Files that import PyTorch, be it through others, or that are marked as a whole, are passed over; of
the rest, tests are left out by the fixtures they ask for, and by their marks.
"""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from tools.files import ROOT

PACKAGES = ("torch", "transformers")
FIXTURES = {
    "browser",
    "in_page",
    "native",  # a GPU, of which the software one comes with the browser
    "playwright",
    "runner",
    "site_url",
    "static_site",
    "toy_model",
    "toy_site_url",
}
MARKS = ("browser", "built", "long", "model")
WHOLE_FILE = re.compile(rf"^pytestmark = .*\bmark\.({'|'.join(MARKS)})\b", re.MULTILINE)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    for package in PACKAGES:  # installed or not: whoever imports it all the same, fails
        sys.modules[package] = None  # type: ignore[assignment]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if not collection_path.match("test_*.py"):
        return None
    is_marked = WHOLE_FILE.search(collection_path.read_text())
    return True if is_marked or imports_heavy(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {item for item in items if asks_for_much(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def asks_for_much(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(fixtures & FIXTURES) or any(item.get_closest_marker(mark) for mark in MARKS)


def imports_heavy(path: Path) -> bool:
    """Return whether importing this file imports one of the packages."""
    waiting, seen = [path], set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        for name in imports_of(file):
            if name.partition(".")[0] in PACKAGES:
                return True
            waiting += files_of(name)
    return False


@cache
def imports_of(file: Path) -> list[str]:
    """Return the modules, or things in modules, that it imports when it is imported itself."""
    names = []
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Import):
            names += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            names += [f"{statement.module}.{alias.name}" for alias in statement.names]
    return names


@cache
def files_of(name: str) -> list[Path]:
    """Return the files of this project that run when this is imported, packages first."""
    parts = name.split(".")
    packages = [ROOT.joinpath(*parts[:end]) for end in range(1, len(parts) + 1)]
    files = [file for path in packages for file in (path / "__init__.py", path.with_suffix(".py"))]
    return [file for file in files if file.is_file()]
