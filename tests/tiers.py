"""Markers, by which a command selects its tests.

`make check` leaves out tests that need a browser, a GPU, a model or PyTorch, and long ones;
`make test` leaves out the thorough ones; `make test-all` runs all in one go. A marker stands beside
its test, or follows from a fixture that the test asks for.
"""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

FIXTURE_MARKERS = {
    "browser": "browser",
    "cpu": "built",
    "firefox": "browser",
    "gpu_toy_site_url": "built",
    "in_page": "browser",
    "native": "gpu",
    "playwright": "browser",
    "runner": "gpu",
    "shared_browser": "browser",
    "site_url": "built",
    "static_site": "built",
    "toy": "gpu",
    "toy_model": "torch",
    "toy_site_url": "built",
}
TORCH = ("torch", "transformers")  # packages
THOROUGH = "thorough"  # a file without this word has no such test


class Tiers:
    """A plugin of pytest that adds markers, and skips files that are left out as a whole."""

    def __init__(self, expression: str) -> None:
        self._left_out = set(re.findall(r"\bnot (\w+)", expression))
        # Alone, or with others that a test must have as well.
        self._is_thorough = bool(re.match(rf"{THOROUGH}\b(?!.* or )", expression))
        if "torch" in self._left_out:
            for package in TORCH:  # even if it is installed, a test that is not marked fails
                sys.modules[package] = None  # type: ignore[assignment]

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Do not import what is left out: PyTorch may be missing, and takes seconds to import."""
        if not collection_path.match("test_*.py"):
            return None
        if self._is_thorough and THOROUGH not in source_of(collection_path):
            return True
        return True if self._left_out & file_markers(collection_path) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Add the markers that follow from fixtures and from other markers, before -m selects."""
        for item in items:
            asked_for = getattr(item, "fixturenames", ())
            markers = {FIXTURE_MARKERS[name] for name in FIXTURE_MARKERS.keys() & asked_for}
            if "cpu" in asked_for:  # in place of a GPU
                markers.discard("gpu")
            for marker in markers:
                item.add_marker(marker)
            if item.get_closest_marker("browser") and item.get_closest_marker("thorough_in_page"):
                item.add_marker(THOROUGH)
            if item.get_closest_marker(THOROUGH) and THOROUGH not in source_of(item.path):
                raise pytest.UsageError(f"{item.nodeid}: '{THOROUGH}' must stand in its own file")


@cache
def source_of(path: Path) -> str:
    return path.read_text()


def file_markers(path: Path) -> set[str]:
    """Return the markers of a whole file: the names in `pytestmark = …`."""
    for statement in ast.parse(source_of(path)).body:
        match statement:
            case ast.Assign(targets=[ast.Name("pytestmark")], value=value):
                attributes = {n.attr for n in ast.walk(value) if isinstance(n, ast.Attribute)}
                return attributes - {"mark"}
    return set()
