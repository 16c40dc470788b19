"""The order in which workers take files of tests."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.order import CostliestFirst


def item(file: str, *markers: str) -> Any:
    found = [SimpleNamespace(name=name) for name in markers]
    return SimpleNamespace(path=Path(file), name=markers, iter_markers=lambda: found)


def test_the_costliest_files_come_first_and_stay_whole() -> None:
    light = [item("a.py") for _ in range(9)]
    page = item("b.py", "torch", "browser")
    in_between = item("c.py", "gpu")
    beside = item("b.py")
    items = [*light, page, in_between, beside]
    CostliestFirst().pytest_collection_modifyitems(items)
    assert items == [page, beside, in_between, *light]
