"""Output of users' Python, which goes to its call as it happens and not to the worker's console."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

AT_ONCE = 1000  # writes of a call that are told one by one; more of them wait for each other
SECONDS = 0.1

Tell = Callable[[str], None]


class Printed:
    """The text that one call prints; writes of an endless loop are told together."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._writes = 0
        self._waiting: list[str] = []
        self._told = 0.0

    def write(self, text: str) -> None:
        self._writes += 1
        self._waiting.append(text)
        if not text.endswith("\n"):
            return
        if self._writes < AT_ONCE or time.perf_counter() - self._told > SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._tell("".join(self._waiting))
        self._waiting.clear()
        self._told = time.perf_counter()


_printed: ContextVar[Printed | None] = ContextVar("printed", default=None)


class _Output(io.TextIOBase):
    """A stand-in for sys.stdout or sys.stderr that writes to the running call, if there is one."""

    def __init__(self, before: io.TextIOBase) -> None:
        self._before = before

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        printed = _printed.get()
        if printed is None:
            return self._before.write(text)
        printed.write(text)
        return len(text)

    def flush(self) -> None:
        printed = _printed.get()
        (self._before if printed is None else printed).flush()


def listen() -> None:
    """Route standard output and error to the calls from now on."""
    for name in ("stdout", "stderr"):
        setattr(sys, name, _Output(getattr(sys, name)))


@contextmanager
def printing(tell: Tell) -> Iterator[None]:
    """Tell what is printed inside, and in tasks that begin there."""
    printed = Printed(tell)
    token = _printed.set(printed)
    try:
        yield
    finally:
        printed.flush()
        _printed.reset(token)
