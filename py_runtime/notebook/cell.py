"""A cell that runs: its code, the stream of what it prints and shows, and what it asks meanwhile.

In code that does not await, `input()` and `time.sleep()` suspend Python's own stack where the
browser can (JSPI); other calls of the page go on meanwhile.
"""

import asyncio
import builtins
import linecache
import os
import sys
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from itertools import count
from typing import Any

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError
from py_runtime.notebook import packages, printed, rich
from py_runtime.notebook.magics import parted

Tell = Callable[[dict[str, Any]], None]

PLOTS = "module://py_runtime.notebook.plots"  # matplotlib's backend
SLICE = 0.05  # seconds of a sleep that nothing but a signal ends
PROGRESS_SECONDS = 0.1

_running: ContextVar["Cell | None"] = ContextVar("cell", default=None)
_asked: dict[int, asyncio.Future[Any]] = {}
_numbers = count(1)
_plain_sleep = time.sleep


class CellError(InpageError):
    """An error of a cell that wants what this page cannot give."""

    code = "invalid_request"


class Cell:
    """A run of one cell; `tell` takes its events (`CellEvent` in web/calls.d.ts)."""

    def __init__(self, tell: Tell, cancel: CancelToken) -> None:
        self._tell = tell
        self._cancel = cancel
        self._pauses: set[asyncio.Future[Any]] = set()
        cancel.on_cancel(self._end_pauses)

    async def run(self, code: str, namespace: dict[str, Any], file: str) -> None:
        """Run the code in the namespace and show the value of its last expression."""
        from pyodide.code import eval_code_async

        commands, code = parted(code)
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        token = _running.set(self)
        try:
            with printed.printing(lambda text: self._tell({"printed": text})):
                for command in commands:
                    await packages.install(command)
                await packages.fetch_imports(code)
                value = await eval_code_async(code, namespace, filename=file)
                self.show(value)
                self._show_figures()
        finally:
            _running.reset(token)

    def show(self, value: Any, name: str = "") -> None:
        """Show a value below what was printed; a second one of the same name takes its place."""
        shown = rich.bundle(value)
        if shown:
            sys.stdout.flush()
            self._tell({"shown": shown, "name": name})

    def _show_figures(self) -> None:
        plots = sys.modules.get("py_runtime.notebook.plots")
        if plots is not None:
            plots.show()

    def tell_progress(self, told: dict[str, Any]) -> None:
        self._tell({"progress": told})

    def pause(self, waiting: Coroutine[Any, Any, Any] | asyncio.Future[Any]) -> Any:
        """Wait, in code that does not await; Stop ends it."""
        from pyodide.ffi import run_sync

        task = asyncio.ensure_future(waiting)
        self._pauses.add(task)
        try:
            return run_sync(task)
        except BaseException:
            if self._cancel.cancelled:
                raise KeyboardInterrupt from None
            raise
        finally:
            self._pauses.discard(task)

    async def ask(self, wanted: dict[str, Any]) -> Any:
        """Ask the page, and wait for its answer."""
        sys.stdout.flush()
        number = next(_numbers)
        _asked[number] = asyncio.get_running_loop().create_future()
        self._tell({"asks": {**wanted, "number": number}})
        try:
            return await _asked[number]
        finally:
            del _asked[number]

    def _end_pauses(self) -> None:
        for task in self._pauses:
            task.cancel()


def answer(number: int, value: Any) -> None:
    """Give a cell what it asked for."""
    waiting = _asked.get(number)
    if waiting is not None and not waiting.done():
        waiting.set_result(value)


def current() -> Cell:
    """Return the cell that is running."""
    cell = _running.get()
    if cell is None:
        raise CellError("this works while a cell of the notebook runs")
    return cell


def can_pause() -> bool:
    """Return whether code that does not await can wait for something."""
    from pyodide.ffi import can_run_sync

    return bool(can_run_sync())


def listen() -> None:
    """Have `time.sleep`, `input` and matplotlib work in cells from now on."""
    time.sleep = sleep  # type: ignore[assignment]
    builtins.input = ask_line
    os.environ.setdefault("MPLBACKEND", PLOTS)


def sleep(seconds: float) -> None:
    """Sleep; other calls go on meanwhile where the browser can suspend Python."""
    cell = _running.get()
    if cell is not None and can_pause():
        cell.pause(asyncio.sleep(seconds))
        return
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        _plain_sleep(min(left, SLICE))  # a signal comes through between two


def ask_line(prompt: object = "") -> str:
    """Ask for a line of text, in a field below the cell."""
    cell = current()
    if not can_pause():
        raise CellError(
            "this browser cannot pause Python for input(): write `await ask(…)` instead, or use a "
            "current Chrome or Edge"
        )
    return str(cell.pause(cell.ask({"kind": "line", "prompt": str(prompt)})))


async def ask(prompt: object = "") -> str:
    """Wait for a line of text, in any browser: `name = await` this, with a question."""
    return str(await current().ask({"kind": "line", "prompt": str(prompt)}))


def display(*values: Any, name: str = "") -> None:
    """Show values as a cell's last line is shown; with a name, in the place of the one before."""
    for value in values:
        current().show(value, name)


class progress:
    """A bar below the cell while a loop goes on: `for layer in progress(range(30)): …`."""

    def __init__(self, items: Any, label: str = "", total: int | None = None) -> None:
        self._items = items
        self._label = label
        self._total = len(items) if total is None and hasattr(items, "__len__") else total
        self._number = next(_numbers)
        self._told = 0.0

    def __iter__(self) -> Any:
        done = 0
        self._tell(0)
        for item in self._items:
            yield item
            done += 1
            if time.perf_counter() - self._told > PROGRESS_SECONDS:
                self._tell(done)
        self._tell(done)

    def _tell(self, done: int) -> None:
        self._told = time.perf_counter()
        told = {"number": self._number, "label": self._label, "done": done, "total": self._total}
        current().tell_progress(told)
