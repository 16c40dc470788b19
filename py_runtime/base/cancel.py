"""Cancellation: the caller sets a token, and the work checks it between its steps."""

from collections.abc import Callable

from py_runtime.base.errors import AbortedError


class CancelToken:
    """A token that is set once, for good; work that waits registers a callback."""

    def __init__(self) -> None:
        self.cancelled = False
        self._callbacks: list[Callable[[], None]] = []

    def cancel(self) -> None:
        if self.cancelled:
            return
        self.cancelled = True
        for callback in list(self._callbacks):
            callback()

    def check(self) -> None:
        """Raise AbortedError once the caller has cancelled."""
        if self.cancelled:
            raise AbortedError()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Call back on cancellation, at once if it has happened, for work that waits."""
        self._callbacks.append(callback)
        if self.cancelled:
            callback()

    def forget(self, callback: Callable[[], None]) -> None:
        """Call back no more: the work that waited is done."""
        self._callbacks.remove(callback)
