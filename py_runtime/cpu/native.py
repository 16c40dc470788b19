"""The kernels' machine natively: wasmtime runs the page's modules in Python's threads."""

import asyncio
import ctypes
import math
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import wasmtime
from wasmtime import _ffi as ffi

from py_runtime.base.errors import GpuDeviceLostError, GpuOutOfMemoryError
from py_runtime.base.shapes import ceil_div
from py_runtime.base.sizes import in_words
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

FIRST_PAGES = 64
SLICE_SECONDS = 0.03  # of computing, after which the event loop does what else there is to do
TURNS_BETWEEN = 8  # of the event loop between two slices: to stop takes several

T = TypeVar("T")


def default_threads() -> int:
    """Return how many threads leave the machine usable, of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return usable_threads(len(os.sched_getaffinity(0)))
    return usable_threads(os.cpu_count() or 1)


async def request_cpu(threads: int | None = None) -> CpuDevice:
    """Open the CPU as a device."""
    return CpuDevice(NativeMachine(threads or default_threads()))


class SharedMemory(wasmtime.SharedMemory):
    """A shared memory that can be linked: wasmtime-py 50 passes a pointer to its pointer."""

    def _as_extern(self) -> Any:
        union = ffi.wasmtime_extern_union(sharedmemory=self.ptr())
        return ffi.wasmtime_extern_t(ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)


@dataclass(eq=False)
class _Job:
    """The rest of a task that is under way."""

    writes: Sequence[tuple[int, np.ndarray]]
    plan: CpuPlan | None
    rounds: int
    reads: Sequence[tuple[int, int]]
    future: "asyncio.Future[list[np.ndarray]] | None"  # nobody may wait for the end
    at: int = 0  # the next step of the plan


class NativeMachine(Machine):
    """A shared memory, and an instance of the kernels for each thread.

    Jobs are done one after the other, in slices of time between which the event loop turns: so
    Stop is heard, and others are answered. Asking for the time would be a call from the kernels to
    Python at each step; instead a thread calls the kernels back when a slice is over.
    """

    max_memory = MAX_PAGES * PAGE

    def __init__(self, threads: int) -> None:
        self.threads = threads
        config = wasmtime.Config()
        config.wasm_threads = True
        config.wasm_simd = True
        config.wasm_relaxed_simd = True
        config.shared_memory = True
        config.cache = True
        self._engine = wasmtime.Engine(config)
        kind = wasmtime.MemoryType(wasmtime.Limits(FIRST_PAGES, MAX_PAGES), shared=True)
        self._memory = SharedMemory(self._engine, kind)
        self._module = wasmtime.Module(self._engine, module_code(MODULES[1]))
        self._store, self._exports = self._instance()
        self.heap_base = self._exports["__heap_base"].value(self._store)
        self._pool: list[threading.Thread] = []
        self._jobs: deque[_Job] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None  # whose turns do the jobs
        self._lost: str | None = None
        self._called_back_at = self.call("called_back_at")
        self._timer: threading.Thread | None = None
        self._has_jobs, self._is_closed = threading.Event(), threading.Event()
        self._view()

    def _instance(self) -> tuple[Any, Any]:
        store = wasmtime.Store(self._engine)
        linker = wasmtime.Linker(self._engine)
        linker.define(store, "env", "memory", self._memory)
        kind = wasmtime.FuncType([], [wasmtime.ValType.f64()])
        linker.define_func("host", "now", kind, lambda: 1000 * time.perf_counter())
        return store, linker.instantiate(store, self._module).exports(store)

    def _view(self) -> None:
        size = self._memory.data_len()
        address = ctypes.addressof(self._memory.data_ptr().contents)
        self._bytes = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def grow(self, nbytes: int) -> None:
        missing = nbytes - len(self._bytes)
        if missing > 0:
            try:
                self._memory.grow(ceil_div(missing, PAGE))
            except wasmtime.WasmtimeError as error:
                raise GpuOutOfMemoryError(
                    f"the memory of the CPU's kernels cannot grow to {in_words(nbytes)}: {error}"
                ) from None
            self._view()

    def clear(self, address: int, nbytes: int) -> None:
        if self._jobs:
            self._begin(_Job([(address, np.zeros(nbytes, np.uint8))], None, 0, (), None))
        else:
            self._bytes[address : address + nbytes] = 0

    def call(self, function: str, *arguments: float) -> int:
        return int(self._exports[function](self._store, *arguments) or 0) & 0xFFFFFFFF

    def start_thread(self, number: int, stack: int) -> None:
        thread = threading.Thread(target=self._work, args=(number, stack), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # a container may allow few: the others take its share
            return
        self._pool.append(thread)

    def _work(self, number: int, stack: int) -> None:
        store, exports = self._instance()
        exports["__stack_pointer"].set_value(store, stack)
        exports["work"](store, number)

    def start(self, task: Task) -> None:
        self._take(task, None)

    def ask(self, task: Task) -> "asyncio.Future[list[np.ndarray]]":
        future: asyncio.Future[list[np.ndarray]]
        future = asyncio.get_running_loop().create_future()
        self._take(task, future)
        return future

    def time_steps(self, plan: CpuPlan) -> "asyncio.Future[np.ndarray]":
        self._finish_jobs()
        self._check()
        moments = [time.perf_counter_ns()]
        for at in range(len(plan.steps)):
            while self._replay(plan, at, at + 1) == at:
                pass
            moments.append(time.perf_counter_ns())
        return _done(np.diff(np.array(moments)).astype(np.float64))

    # Jobs, one after the other -------------------------------------------------------------------

    def _take(self, task: Task, future: "asyncio.Future[list[np.ndarray]] | None") -> None:
        """Take over a task; its data are the caller's again afterwards."""
        self._check()
        if self._jobs and _running_loop() is not self._loop:
            self._finish_jobs()  # what a loop that has ended left undone
            self._check()
        writes: Sequence[tuple[int, np.ndarray]] = ()
        if self._jobs:
            writes = [(address, data.copy()) for address, data in task.writes]
        else:
            self._write(task.writes)
        rounds = task.repeat if task.plan is not None else 0
        if writes or rounds or future:
            self._begin(_Job(writes, task.plan, rounds, task.reads, future))

    def _begin(self, job: _Job) -> None:
        self._jobs.append(job)
        if len(self._jobs) > 1:
            return
        self._loop = _running_loop()
        if self._loop is None:
            self._finish_jobs()
            self._check()
        else:
            self._loop.call_soon(self._turn)
            self._start_timer()

    def _turn(self, pause: int = 0) -> None:
        """Compute for one slice, or pause for so many turns of the event loop."""
        if not pause:
            self._do_jobs()
        if self._jobs and self._loop is not None:
            self._loop.call_soon(self._turn, pause - 1 if pause else TURNS_BETWEEN)

    def _finish_jobs(self) -> None:
        while self._jobs:
            self._do_jobs()

    def _do_jobs(self) -> None:
        """Do jobs until there are none left or the slice is over; at least something is done."""
        self._bytes[self._called_back_at] = 0
        try:
            while self._jobs and self._do(self._jobs[0]):
                self._end(self._jobs.popleft())
                if self._bytes[self._called_back_at]:
                    return
        except GpuDeviceLostError as error:
            self._fail(str(error))
        except BaseException:  # as Ctrl-C, after which nobody knows how far the kernels came
            self._fail("what it computed was interrupted")
            raise

    def _do(self, job: _Job) -> bool:
        """Go on with a job, and return whether it is done."""
        self._write(job.writes)
        job.writes = ()
        while job.rounds and job.plan is not None:
            job.at = self._replay(job.plan, job.at, len(job.plan.steps))
            if job.at < len(job.plan.steps):
                return False
            job.at, job.rounds = 0, job.rounds - 1
            if job.rounds and self._bytes[self._called_back_at]:
                return False
        return True

    def _end(self, job: _Job) -> None:
        if job.future is not None and not job.future.done():
            found = [self._bytes[at : at + nbytes].copy() for at, nbytes in job.reads]
            with suppress(RuntimeError):  # the loop of whoever waited has ended
                job.future.set_result(found)

    def _fail(self, why: str) -> None:
        """Tell all who wait that nothing will come."""
        self._lost = why
        for job in self._jobs:
            if job.future is not None and not job.future.done():
                with suppress(RuntimeError):
                    job.future.set_exception(GpuDeviceLostError(why))
        self._jobs.clear()

    def _check(self) -> None:
        if self._lost is not None:
            raise GpuDeviceLostError(self._lost)

    def _write(self, writes: Sequence[tuple[int, np.ndarray]]) -> None:
        for address, data in writes:
            self._bytes[address : address + data.nbytes] = data.reshape(-1).view(np.uint8)

    def _replay(self, plan: CpuPlan, first: int, last: int) -> int:
        """Replay steps until the slice is over, and return the first that is not done."""
        try:
            at = self.call("replay", plan.steps_at, plan.counts_at, first, last, math.inf)
        except wasmtime.Trap as trap:
            why = str(trap).strip().rpartition("\n")[2].strip(" 0123456789:")  # behind a backtrace
            raise GpuDeviceLostError(f"the CPU's kernels have failed: {why}") from None
        if at > last:
            raise GpuDeviceLostError("a thread of the CPU's kernels has ended while it computed")
        return at

    # Slices --------------------------------------------------------------------------------------

    def _start_timer(self) -> None:
        """Have slices end in time; where there are no threads, they end with their jobs."""
        self._has_jobs.set()
        if self._timer is None:
            self._timer = threading.Thread(target=self._end_slices, daemon=True)
            with suppress(RuntimeError):
                self._timer.start()

    def _end_slices(self) -> None:
        """Call the kernels back every so often while there are jobs: what a thread does."""
        while not self._is_closed.is_set():
            self._has_jobs.wait()
            self._is_closed.wait(SLICE_SECONDS)
            if not self._jobs:
                self._has_jobs.clear()
            if self._jobs:
                self._has_jobs.set()  # they may have begun meanwhile
                self._bytes[self._called_back_at] = 1

    def close(self) -> None:
        self._fail("the device was destroyed; request a new one")
        self._is_closed.set()
        self._has_jobs.set()
        self.call("close_pool")
        for thread in self._pool:
            thread.join()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _done(result: T) -> "asyncio.Future[T]":
    """Return the result as a future that is done in the loop's next turn, after earlier ones."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish() -> None:
        if not future.cancelled():
            future.set_result(result)

    loop.call_soon(finish)
    return future
