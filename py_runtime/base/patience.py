"""Limits of patience: how long a download may stand still, and how slow it may be."""

import time
from collections.abc import Callable

from py_runtime.base.errors import NetworkError
from py_runtime.base.sizes import in_words

# A server that sends a byte now and then never lets a read time out, and would hold a download
# forever. The slowest lines that people use bring some 5 kB a second.
MIN_BYTES_PER_SECOND = 1_000
RATE_SECONDS = 60  # of waiting, over which the rate is taken
STALLED_SECONDS = 60  # without a byte; web/bridge/files.js has the same figure


class SlowError(NetworkError):
    """A server sends so little that the file would never arrive."""

    code = "network_slow"
    is_final = True


class Pace:
    """Checks that what one answer brings comes fast enough to be worth waiting for.

    Only the time spent waiting for bytes counts: whoever writes them to a disk or uploads them to
    the GPU may take as long as it likes.
    """

    def __init__(self, sender: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._sender = sender
        self._clock = clock
        self._waited = 0.0
        self._received = 0
        self._since: float | None = None  # when the current wait began

    def begin_waiting(self) -> None:
        self._since = self._clock()

    def take(self, nbytes: int) -> None:
        """Count what has come since the wait began; SlowError where that is too little."""
        assert self._since is not None, "somebody waited for it"
        self._waited += self._clock() - self._since
        self._received += nbytes
        if not nbytes or self._waited < RATE_SECONDS:
            return
        if self._received < MIN_BYTES_PER_SECOND * self._waited:
            raise SlowError(
                f"{self._sender} is too slow: it sent {in_words(self._received)} in "
                f"{self._waited:.0f} seconds, and at least {in_words(MIN_BYTES_PER_SECOND)} a "
                "second are needed; try again later, or over another connection"
            )
        self._waited, self._received = 0.0, 0
