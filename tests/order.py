"""The order in which workers take files of tests: the costliest first, so that none waits long.

A worker takes whole files, one after the other (`--dist loadfile`). While it works on the last one
the others have nothing left to do; and a test in a page takes as long as hundreds of others.
"""

from collections import Counter
from pathlib import Path

import pytest

# By marker, in hundredths of a processor's second, as measured on average. A test costs as much as
# its costliest marker.
COSTS = {"model": 1000, "long": 300, "browser": 200, "torch": 50, "gpu": 20}
LEAST = 1


class CostliestFirst:
    """A plugin of pytest for workers; on its own, pytest keeps the order of files."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        costs: Counter[Path] = Counter()
        for item in items:
            costs[item.path] += cost(item)
        items.sort(key=lambda item: (-costs[item.path], item.path))  # in a file, nothing moves


def cost(item: pytest.Item) -> int:
    return max([LEAST, *(COSTS.get(marker.name, LEAST) for marker in item.iter_markers())])
