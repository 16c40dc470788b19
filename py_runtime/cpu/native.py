"""The kernels' machine natively: wasmtime runs the same modules as the page, in Python's threads."""

import ctypes
import math
import os
import threading
import time
from typing import Any

import numpy as np
import wasmtime
from wasmtime import _ffi as ffi

from py_runtime.cpu.device import SCRATCH_BYTES, STACK_BYTES, CpuDevice, Machine
from py_runtime.cpu.kernel_table import KERNELS_FOLDER, MODULES

PAGE = 1 << 16
MAX_PAGES = 65535
FIRST_PAGES = 64


def default_threads() -> int:
    """Return how many threads leave the machine usable: all cores of a small one, else all but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if cores <= 2 else cores - 1


async def request_cpu(threads: int | None = None) -> CpuDevice:
    """Open the CPU as a device."""
    return CpuDevice(NativeMachine(threads or default_threads()))


class SharedMemory(wasmtime.SharedMemory):
    """A shared memory that can be linked: wasmtime-py 50 passes a pointer to its pointer."""

    def _as_extern(self) -> Any:
        union = ffi.wasmtime_extern_union(sharedmemory=self.ptr())
        return ffi.wasmtime_extern_t(ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)


class NativeMachine(Machine):
    """A shared memory, and an instance of the kernels for each thread."""

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
        self._module = wasmtime.Module.from_file(self._engine, str(KERNELS_FOLDER / MODULES[1]))
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
            self._memory.grow(-(-missing // PAGE))
            self._view()

    def write(self, address: int, data: np.ndarray) -> None:
        self._bytes[address : address + data.nbytes] = data.reshape(-1).view(np.uint8)

    def read(self, address: int, nbytes: int) -> np.ndarray:
        return self._bytes[address : address + nbytes].copy()

    def clear(self, address: int, nbytes: int) -> None:
        self._bytes[address : address + nbytes] = 0

    def kernel_at(self, number: int) -> tuple[int, int]:
        at = self._exports["kernel_at"](self._store, number)
        function, grain = self.read(at, 8).view(np.uint32)
        return int(function), int(grain)

    def fragment_at(self, number: int) -> int:
        return int(self._exports["fragment_at"](self._store, number))

    def open_pool(self, scratch: int, stacks: int) -> None:
        self._exports["open_pool"](self._store, self.threads, scratch)
        for number in range(1, self.threads):
            stack = stacks + (number + 1) * STACK_BYTES
            thread = threading.Thread(target=self._work, args=(number, stack), daemon=True)
            thread.start()
            self._pool.append(thread)

    def _work(self, number: int, stack: int) -> None:
        store, exports = self._instance()
        exports["__stack_pointer"].set_value(store, stack)
        exports["work"](store, number)

    def replay(self, steps: int, counts: int, last: int, repeat: int) -> None:
        run = self._exports["replay"]
        for _ in range(repeat):
            run(self._store, steps, counts, 0, last, math.inf)

    def time_step(self, steps: int, counts: int, at: int) -> float:
        started = time.perf_counter_ns()
        self._exports["replay"](self._store, steps, counts, at, at + 1, math.inf)
        return time.perf_counter_ns() - started

    def close(self) -> None:
        self._exports["close_pool"](self._store)
        for thread in self._pool:
            thread.join()


assert SCRATCH_BYTES % 16 == 0
