"""How a caller stops what it asked for: the work looks at the token between its steps."""

from collections.abc import Callable

from py_runtime.base.errors import AbortedError


class CancelToken:
    """Set once, for good; whoever waits for something else hears of it through a callback."""

    def __init__(self) -> None:
        self.cancelled = False
        self._callbacks: list[Callable[[], None]] = []

    def cancel(self) -> None:
        if self.cancelled:
            return
        self.cancelled = True
        for callback in self._callbacks:
            callback()

    def check(self) -> None:
        """Raises AbortedError once the caller has cancelled."""
        if self.cancelled:
            raise AbortedError()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Calls back at once or later, for work that waits on something it can break off."""
        self._callbacks.append(callback)
        if self.cancelled:
            callback()
