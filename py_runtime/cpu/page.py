"""The kernels' machine in the page, over `web/bridge/cpu.js`: workers run the kernels.

The browser's names are imported where they are used: a snapshot of Python is made without it.
"""

import asyncio
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from py_runtime.base.errors import GpuOutOfMemoryError
from py_runtime.base.shapes import round_up
from py_runtime.bridge.calls import JsException, address_of, answer_of, bridge, fault
from py_runtime.cpu.device import (
    MAX_PAGES,
    PAGE,
    CpuDevice,
    CpuPlan,
    Machine,
    Task,
    usable_threads,
)
from py_runtime.cpu.kernel_table import MODULES, module_code
from py_runtime.cpu.memory import ALIGNMENT

FIRST_PAGES = 64
MIN_PAGES = 4096  # a browser that does not allow these 256 MiB has no room for a model either
GROWTH = 16 << 20  # bytes, of which a memory grows by a multiple; they are only taken when used
MAX_THREADS = 16  # more add little, as memory is no faster; each is a worker, which takes some MB
ZEROS = 0  # instead of the address of data

_cpu: Any = None  # the CPU's half of the bridge, once it was fetched


async def request_cpu(threads: int | None = None) -> CpuDevice:
    """Open the CPU as a device; where threads cannot share memory, with one."""
    global _cpu
    _cpu = _cpu or await answer_of(bridge.bringCpu())
    count = (threads or default_threads()) if can_share_memory() else 1
    return CpuDevice(await _open_machine(count))


def can_share_memory() -> bool:
    """Return whether threads can share memory.

    The page must be isolated from other origins, and this worker be one that may start others.
    """
    import js

    return bool(getattr(js, "crossOriginIsolated", False)) and hasattr(js, "Worker")


def default_threads() -> int:
    """Return how many threads leave the machine usable, and are worth their workers."""
    from js import navigator

    return min(usable_threads(int(navigator.hardwareConcurrency)), MAX_THREADS)


async def _open_machine(threads: int) -> "PageMachine":
    """Open a machine with as much memory as the browser lets it have; that is only reserved."""
    codes = [np.frombuffer(module_code(name), np.uint8) for name in reversed(MODULES)]
    rows = np.array([(address_of(code), code.nbytes) for code in codes], np.uint32)
    max_pages = MAX_PAGES
    while True:
        try:
            opening = _cpu.open(address_of(rows), len(rows), FIRST_PAGES, max_pages)
            return PageMachine(await answer_of(opening, _cpu.close), threads, max_pages * PAGE)
        except GpuOutOfMemoryError:
            max_pages //= 2
            if max_pages < MIN_PAGES:
                raise


class PageMachine(Machine):
    """A shared memory, and a worker for each thread but this one, which drives them."""

    def __init__(self, handle: int, threads: int, max_memory: int) -> None:
        self._handle = handle
        self.threads = threads
        self.max_memory = max_memory
        self.heap_base = int(_cpu.heapBase(handle))
        self._size = FIRST_PAGES * PAGE
        self._closing = weakref.finalize(self, _cpu.close, handle)  # also where nobody calls it

    def call(self, function: str, *arguments: float) -> int:
        return int(_now(_cpu.call, self._handle, function, *arguments))

    def grow(self, nbytes: int) -> None:
        missing = round_up(nbytes, GROWTH) - self._size
        if missing > 0:
            missing = min(missing, self.max_memory - self._size)
            _now(_cpu.grow, self._handle, missing // PAGE)
            self._size += missing

    def clear(self, address: int, nbytes: int) -> None:
        row = np.array([address, ZEROS, round_up(nbytes, ALIGNMENT)], np.uint32)
        _now(_cpu.submit, self._handle, address_of(row), 1, 0, 0, 0, 0)

    def start_thread(self, number: int, stack: int) -> None:
        _now(_cpu.startThread, self._handle, number, stack)

    def start(self, task: Task) -> None:
        rows = _rows(task.writes)
        _now(_cpu.submit, self._handle, *_submitted(task, rows))

    def ask(self, task: Task) -> "asyncio.Future[list[np.ndarray]]":
        rows = _rows(task.writes)
        results = [np.empty(nbytes, np.uint8) for _, nbytes in task.reads]
        targets = [(at, to) for (at, _), to in zip(task.reads, results, strict=True)]
        read_rows = _rows(targets)
        promise = _cpu.submitAndRead(
            self._handle, address_of(read_rows), len(targets), *_submitted(task, rows)
        )
        return self._answer(promise, results)

    def time_steps(self, plan: CpuPlan) -> "asyncio.Future[np.ndarray]":
        times = np.zeros(len(plan.steps), np.float64)
        steps = (plan.steps_at, plan.counts_at, len(plan.steps))
        return self._answer(_cpu.timeSteps(self._handle, *steps, address_of(times)), times)

    def close(self) -> None:
        self._closing()

    def _answer(self, promise: Any, results: Any) -> "asyncio.Future[Any]":
        """Return a bare future: a task around the promise would cost turns of the page's loop."""
        future = asyncio.get_running_loop().create_future()

        # The bridge writes to the results later: `arrived` keeps them alive until then, also if the
        # caller was cancelled; and with `self`, the machine stays open.
        def arrived(nothing: None) -> None:
            if not future.done() and self:
                future.set_result(results)

        def failed(error: JsException) -> None:
            if not future.done():
                future.set_exception(fault(error))

        promise.then(arrived, failed)
        return future


def _now(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except JsException as error:
        raise fault(error) from None


def _rows(places: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
    """Return the table that the bridge reads: u32 [places, 3]."""
    rows = [(address, address_of(array), array.nbytes) for address, array in places]
    return np.array(rows, np.uint32)


def _submitted(task: Task, rows: np.ndarray) -> tuple[int, ...]:
    if task.plan is None:
        return (address_of(rows), len(rows), 0, 0, 0, 0)
    plan = task.plan
    return (
        address_of(rows),
        len(rows),
        plan.steps_at,
        plan.counts_at,
        len(plan.steps),
        task.repeat,
    )
