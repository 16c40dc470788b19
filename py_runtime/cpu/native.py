"""The kernels' machine natively: wasmtime runs the page's modules in Python's threads."""

import asyncio
import ctypes
import math
import os
import threading
import time
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


class NativeMachine(Machine):
    """A shared memory, and an instance of the kernels for each thread; tasks are done at once."""

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
        for address, data in task.writes:
            self._bytes[address : address + data.nbytes] = data.reshape(-1).view(np.uint8)
        if task.plan is not None:
            for _ in range(task.repeat):
                self._replay(task.plan, 0, len(task.plan.steps))

    def ask(self, task: Task) -> "asyncio.Future[list[np.ndarray]]":
        self.start(task)
        return _done([self._bytes[at : at + nbytes].copy() for at, nbytes in task.reads])

    def time_steps(self, plan: CpuPlan) -> "asyncio.Future[np.ndarray]":
        moments = [time.perf_counter_ns()]
        for at in range(len(plan.steps)):
            self._replay(plan, at, at + 1)
            moments.append(time.perf_counter_ns())
        return _done(np.diff(np.array(moments)).astype(np.float64))

    def _replay(self, plan: CpuPlan, first: int, last: int) -> None:
        try:
            at = self.call("replay", plan.steps_at, plan.counts_at, first, last, math.inf)
        except wasmtime.Trap as trap:
            why = str(trap).strip().rpartition("\n")[2].strip(" 0123456789:")  # behind a backtrace
            raise GpuDeviceLostError(f"the CPU's kernels have failed: {why}") from None
        if at != last:
            raise GpuDeviceLostError("a thread of the CPU's kernels has ended while it computed")

    def close(self) -> None:
        self.call("close_pool")
        for thread in self._pool:
            thread.join()


def _done(result: T) -> "asyncio.Future[T]":
    """Return the result as a future that is done in the loop's next turn, after earlier ones."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish() -> None:
        if not future.cancelled():
            future.set_result(result)

    loop.call_soon(finish)
    return future
