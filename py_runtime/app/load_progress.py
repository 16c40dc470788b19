"""The progress of a load, as pages and notebooks hear of it."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from py_runtime.base.messages import message, worded
from py_runtime.base.progress import DOWNLOAD, UPLOAD

Json = dict[str, Any]
Emit = Callable[[Json], None]


class LoadMeter:
    """Tells how far a load is: the phase, what it counts, the seconds, and one overall fraction."""

    def __init__(self, emit: Emit) -> None:
        self.downloaded = False
        self.download_share = 0.0  # of a load that downloads everything before the rest begins
        self._speed = Speed()
        self._emit = emit
        self._started = time.perf_counter()
        self._fraction = 0.0  # of the weights that are on the GPU; never falls

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.perf_counter()
        self.downloaded |= phase == DOWNLOAD and done > 0
        share, first = done / total if total else 1.0, self.download_share
        if phase == UPLOAD:
            self._fraction = max(self._fraction, first + (1 - first) * share)
        elif phase == DOWNLOAD:
            self._fraction = max(self._fraction, first * share)
        counts = "bytes_done" if phase in (DOWNLOAD, UPLOAD) else "count_done"
        messages = [message(counts, done=done, total=total)]
        told: Json = {
            "phase": phase,
            "done": done,
            "total": total,
            "seconds": now - self._started,
            "fraction": self._fraction,
        }
        speed = self._speed.after(now, done) if phase == DOWNLOAD and done < total else None
        if speed:
            left = (total - done) / speed
            told |= {"bytes_per_second": speed, "seconds_left": left}
            messages.append(message("download_speed", bytes_per_second=speed))
            messages.append(message("time_left", seconds=left))
        self._emit({**told, "messages": messages, "text": worded(messages)})


class Speed:
    """The speed of the last seconds; what was there before the first look counts for nothing."""

    SECONDS = 10.0
    MIN_SECONDS = 1.0  # before that, nobody can tell

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def after(self, now: float, done: int) -> float | None:
        """Return bytes a second, or None."""
        self._seen.append((now, done))
        while now - self._seen[0][0] > self.SECONDS and len(self._seen) > 2:
            self._seen.popleft()
        start, before = self._seen[0]
        return (done - before) / (now - start) if now - start >= self.MIN_SECONDS else None
