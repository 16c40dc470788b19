"""The duties of the CPU's pool of threads, natively and in the page, on behalf of the tests."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.errors import GpuDeviceLostError
from py_runtime.base.shapes import ceil_div
from py_runtime.gpu import (
    UNIFORM_USAGE,
    BindGroupSpec,
    Binding,
    Buffer,
    BufferSpec,
    Copy,
    Device,
    Dispatch,
    PipelineSpec,
    Plan,
    Read,
    Write,
)
from py_runtime.gpu.kernel_sources import kernel_source
from py_runtime.gpu.shader_figures import figures_of

WORKGROUP = figures_of("elementwise/unary")["WORKGROUP"]
LARGE = 1 << 20  # floats: enough chunks for all threads
LONG = 1 << 23  # floats: their step takes so long that threads wake up for it on a busy machine
FOR_EVER = 1 << 30  # rounds
LOOKS = 20  # at the clock, until a slice of a replay is surely under way
NO_STACK = 16  # where a stack leaves its thread no room: it fails once it has claimed a chunk


@dataclass
class Exponential:
    """A plan that computes y = exp(x)."""

    device: Device
    x: Buffer
    y: Buffer
    plan: Plan
    counts: np.ndarray

    @classmethod
    async def create(cls, device: Device, count: int) -> "Exponential":
        x, y, params = await device.create_buffers(
            [
                BufferSpec("x", 4 * count),
                BufferSpec("y", 4 * count),
                BufferSpec("params", 16, UNIFORM_USAGE),
            ]
        )
        device.write_buffer(params, np.array([count, 0, 0, 0], np.uint32))
        kernel = kernel_source("elementwise/unary", {"elements": "f32"})
        code = figures_of("elementwise/fragments/codes_of_one")["EXP"]
        spec = PipelineSpec("exp", kernel.source, (("CODE", code),), kernel=kernel)
        (pipeline,) = await device.create_compute_pipelines([spec])
        bound = {"x": Binding(x), "out": Binding(y), "params": Binding(params)}
        names = kernel.bindings
        bindings = tuple(bound[name] for name in names)
        (group,) = await device.create_bind_groups(
            [BindGroupSpec("exp", pipeline, bindings, names)]
        )
        plan = device.create_plan("exp", [Dispatch("exp", pipeline, group)])
        counts = np.array([[ceil_div(count, WORKGROUP), 1, 1]], np.uint32)
        return cls(device, x, y, plan, counts)

    def start(
        self, value: float | None = None, repeat: int = 1
    ) -> "asyncio.Future[list[np.ndarray]]":
        """Begin to compute, of this value if there is one."""
        writes = []
        if value is not None:
            writes = [Write(self.x, np.full(self.x.size // 4, value, np.float32))]
        read = Read(self.y, self.y.size)
        return self.device.submit_to_read(self.plan, self.counts, writes, [read], repeat)


async def computed(device: Device, values: np.ndarray) -> np.ndarray:
    """Return exp of the values, computed several times."""
    exponential = await Exponential.create(device, len(values))
    device.write_buffer(exponential.x, values)
    (result,) = await exponential.start(repeat=5)
    return result.view(np.float32)


async def in_order(device: Device) -> list[float]:
    """Return the results of tasks that were begun one after the other, none of them awaited."""
    exponential = await Exponential.create(device, LARGE)
    first = exponential.start(0.0, repeat=20)
    second = exponential.start(1.0)
    device.write_buffer(exponential.x, np.full(LARGE, 2.0, np.float32))
    third = exponential.start()
    results = [(await task)[0].view(np.float32) for task in (third, second, first)]
    assert all((result == result[0]).all() for result in results)
    return [float(result[0]) for result in reversed(results)]


async def turns_meanwhile(device: Device) -> int:
    """Return how often the event loop turns while a plan is replayed for some time."""
    exponential = await Exponential.create(device, LARGE)
    computing = exponential.start(0.0, repeat=100)
    turns = 0
    while not computing.done():
        await asyncio.sleep(0)
        turns += 1
    return turns


async def copies_meanwhile(device: Device) -> list[Any]:
    """Return how often the event loop turns while bytes are copied, and the last one."""
    source, target = await device.create_buffers(
        [BufferSpec("source", 4 * LARGE), BufferSpec("target", 4 * LARGE)]
    )
    device.write_buffer(source, np.full(LARGE, 7, np.uint32))
    plan = device.create_plan("copies", [Copy("copy", source, target)] * 200)
    counts = np.tile(np.array([0, 0, 4 * LARGE], np.uint32), (200, 1))
    copying = device.submit_to_read(plan, counts, [], [Read(target, 4, 4 * LARGE - 4)])
    turns = 0
    while not copying.done():
        await asyncio.sleep(0)
        turns += 1
    return [turns, int((await copying)[0].view(np.uint32)[0])]


async def memory_again(device: Device) -> dict[str, Any]:
    """Look at memory that is freed and taken again while a plan still writes to it."""
    exponential = await Exponential.create(device, LARGE)
    computing = exponential.start(0.0, repeat=20)
    address = exponential.y.handle
    device.destroy_buffers([exponential.y])
    (again,) = await device.create_buffers([BufferSpec("again", exponential.y.size)])
    after = (await device.read_buffer(again, again.size)).view(np.float32)
    (before,) = await computing
    return {
        "is_same": again.handle == address,
        "before": float(before.view(np.float32)[-1]),
        "after": float(np.abs(after).max()),
    }


async def growth(device: Device) -> list[float]:
    """Return sums of buffers after memory has grown by 64 MiB beside them."""
    first = await Exponential.create(device, LARGE)
    computing = first.start(0.0, repeat=5)
    (large,) = await device.create_buffers([BufferSpec("large", 64 << 20)])
    device.write_buffer(large, np.ones(16 << 20, np.float32))
    (before,) = await computing
    (after,) = await first.start(0.0)
    beside = await device.read_buffer(large, large.size)
    device.destroy_buffers([large])
    return [float(data.view(np.float32).sum()) for data in (before, after, beside)]


async def times(device: Device) -> list[float]:
    """Return the nanoseconds of a launch, and of one that is skipped."""
    exponential = await Exponential.create(device, LARGE)
    (step,) = exponential.plan.steps
    plan = device.create_plan("timed", [step, step])
    counts = np.array([exponential.counts[0], [0, 1, 1]], np.uint32)
    return (await device.time_steps(plan, counts)).tolist()


# In the page only --------------------------------------------------------------------------------


def workers_of(device: Any) -> Any:
    """Return the workers of a device, in the page."""
    from py_runtime.cpu import page

    return page._cpu.machines.get(device._machine._handle).workers


async def calls_of_a_submit(device: Device) -> int:
    """Return how many calls of the bridge replay 300 steps and read the result."""
    from py_runtime.bridge.calls import bridge

    exponential = await Exponential.create(device, 64)
    plan = device.create_plan("steps", exponential.plan.steps * 300)
    writes = [Write(exponential.x, np.zeros(64, np.float32))]
    calls = int(bridge.calls)
    read = Read(exponential.y, 4)
    await device.submit_and_read(plan, np.tile(exponential.counts, (300, 1)), writes, [read], 2)
    return int(bridge.calls) - calls


async def without_a_worker(device: Device) -> list[float]:
    """Return a result from before and from after a worker has ended between two launches."""
    exponential = await Exponential.create(device, LARGE)
    (before,) = await exponential.start(0.0)
    workers_of(device)[0].terminate()
    (after,) = await exponential.start(1.0)
    return [float(data.view(np.float32).mean()) for data in (before, after)]


async def faults_after(device: Any, harm: str) -> list[str]:
    """Return the errors of a task that is under way, and of a later one, after such harm."""
    exponential = await Exponential.create(device, LONG)
    await exponential.start(0.0)
    computing = exponential.start(repeat=FOR_EVER)
    await asyncio.sleep(0.1)
    if harm == "destroyed":
        device.destroy()
    else:
        device._machine.start_thread(1, NO_STACK)
    return [await error_of(computing), await error_of(device.read_buffer(exponential.y, 4))]


async def end_threads_that_compute(device: Any) -> None:
    """End all threads in the middle of their chunks, of a task that nobody waits for."""
    exponential = await Exponential.create(device, LONG)
    await exponential.start(0.0)
    exponential.start(repeat=FOR_EVER).add_done_callback(lambda task: task.exception())
    await asyncio.sleep(0.1)
    await end_while_they_compute(workers_of(device))


async def end_while_they_compute(workers: Any) -> None:
    """End workers during a replay: its driver looks at the clock between chunks of its own.

    Between two slices of a replay they have nothing in hand, and nobody would miss them.
    """
    from js import performance
    from pyodide.ffi import create_proxy

    look = performance.now.bind(performance)
    looks = 0
    over = asyncio.get_running_loop().create_future()

    def look_and_end() -> float:
        nonlocal looks
        looks += 1
        if looks == LOOKS:
            for worker in workers:
                worker.terminate()
            performance.now = look
            over.set_result(None)
        return float(look())

    performance.now = create_proxy(look_and_end)
    await over


async def error_of(task: Awaitable[Any]) -> str:
    try:
        await task
    except GpuDeviceLostError as error:
        return str(error)
    return ""
