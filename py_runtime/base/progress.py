"""Progress of a load, reported often enough to watch and rarely enough not to slow it down."""

import time
from collections import defaultdict
from typing import Protocol

DOWNLOAD, UPLOAD, SHADERS = "download", "upload", "shaders"
SECONDS_BETWEEN = 0.05  # two calls of one phase


class LoadProgress(Protocol):
    """A callback; phases are "download" and "upload" in bytes, "shaders" in counts."""

    def __call__(self, phase: str, done: int, total: int) -> None: ...


class Meter:
    """A meter that adds up each phase over its items and reports to the caller.

    Work that is done twice, such as a file fetched again because its stored copy was damaged,
    counts once.
    """

    def __init__(self, tell: LoadProgress | None = None) -> None:
        self._tell = tell
        self._totals: dict[str, dict[str, int]] = defaultdict(dict)  # by phase and item
        self._reached: dict[str, dict[str, int]] = defaultdict(dict)
        self._told_at: dict[str, float] = {}

    def expect(self, phase: str, item: str, amount: int) -> None:
        self._totals[phase][item] = amount

    def reach(self, phase: str, item: str, amount: int) -> None:
        """Record how far an item is; the call that completes a phase is always reported."""
        self._reached[phase][item] = max(amount, self._reached[phase].get(item, 0))
        done, total, now = self.done(phase), sum(self._totals[phase].values()), time.monotonic()
        recently = now - self._told_at.get(phase, -SECONDS_BETWEEN) < SECONDS_BETWEEN
        if self._tell is None or (recently and done < total):
            return
        self._told_at[phase] = now
        self._tell(phase, done, total)

    def done(self, phase: str) -> int:
        return sum(self._reached[phase].values())
