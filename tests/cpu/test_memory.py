"""The memory of the CPU's kernels: addresses, room that runs out, and kernels that fail in it."""

import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import wasmtime
from hypothesis import given
from hypothesis import strategies as st

from py_runtime.base.errors import GpuDeviceLostError, GpuOutOfMemoryError
from py_runtime.base.shapes import round_up
from py_runtime.cpu import native
from py_runtime.cpu.memory import ALIGNMENT, Addresses
from py_runtime.cpu.native import request_cpu
from py_runtime.gpu import BindGroupSpec, Binding, BufferSpec
from tests.cpu.in_runtime import LARGE, Exponential, computed
from tests.runners import wait

pytestmark = pytest.mark.built

START, LIMIT = 100, 160 * ALIGNMENT


@given(
    # Bytes that are taken, or which of those that were taken are freed.
    st.lists(st.one_of(st.integers(0, 3000), st.floats(0, 0.999)), max_size=60)
)
def test_what_is_taken_is_apart_and_what_is_free_is_one_piece_again(acts: list[float]) -> None:
    addresses = Addresses(START, LIMIT)
    whole = addresses.bytes_left
    taken: list[tuple[int, int]] = []
    for act in acts:
        if isinstance(act, int):
            try:
                taken.append((addresses.allocate("x", act), max(act, 1)))
            except GpuOutOfMemoryError:
                assert act > 0
        elif taken:
            addresses.free(taken.pop(int(act * len(taken)))[0])
        places = sorted(taken)
        assert all(at >= START and at % ALIGNMENT == 0 for at, _ in places)
        assert all(at + size <= LIMIT for at, size in places)
        assert all(at + size <= after for (at, size), (after, _) in pairwise(places))
    for at, _ in taken:
        addresses.free(at)
    assert addresses.bytes_left == whole
    assert addresses.allocate("all of it", whole)  # in one piece


def test_the_last_byte_is_given_and_no_other() -> None:
    addresses = Addresses(0, 4 * ALIGNMENT)
    assert addresses.allocate("all", 4 * ALIGNMENT) == 0
    with pytest.raises(GpuOutOfMemoryError, match="'one more' takes 1 byte"):
        addresses.allocate("one more", 1)


PARTS = ("buffers", "pipelines", "bind groups", "a plan")


@pytest.mark.parametrize("part", PARTS)
def test_what_does_not_fit_as_a_whole_leaves_nothing_behind(part: str) -> None:
    """There is room for one of two things of a kind."""

    async def make() -> tuple[int | None, int | None]:
        device = await request_cpu(1)
        made = await Exponential.create(device, 4)
        plan: Any = made.plan
        (step,) = plan.steps
        (spec,) = device._pipelines
        bound = BindGroupSpec("y", step.pipeline, (Binding(made.x),), ("x",))
        others = [replace(spec, label=name) for name in "ab"]

        async def make_plan() -> None:
            device.create_plan("two tables", [step])

        sizes = device._addresses._sizes
        made_by: dict[str, tuple[int, Callable[[], Awaitable[object]]]] = {
            "buffers": (1, lambda: device.create_buffers([BufferSpec("a", 1), BufferSpec("b", 1)])),
            "pipelines": (
                sizes[step.pipeline.handle],
                lambda: device.create_compute_pipelines(others),
            ),
            "bind groups": (
                sizes[step.bind_group.handle],
                lambda: device.create_bind_groups([bound, bound]),
            ),
            "a plan": (sizes[plan.steps_at], make_plan),
        }
        room, make_two = made_by[part]
        device._addresses._limit = device._addresses.end + round_up(room, ALIGNMENT)
        before = device.bytes_left
        with pytest.raises(GpuOutOfMemoryError, match="that WebAssembly allows"):
            await make_two()
        return before, device.bytes_left

    before, after = wait(make())
    assert before == after


def test_memory_that_cannot_grow_is_none_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def make() -> None:
        device = await request_cpu(1)
        before = device.bytes_left

        def refuse(pages: int) -> None:
            raise wasmtime.WasmtimeError("no")

        with monkeypatch.context() as patch:
            machine: Any = device._machine
            patch.setattr(machine._memory, "grow", refuse)
            with pytest.raises(GpuOutOfMemoryError, match="cannot grow to"):
                await device.create_buffers([BufferSpec("small", 4), BufferSpec("large", 1 << 28)])
        assert device.bytes_left == before
        values = np.linspace(-3, 3, 100, dtype=np.float32)
        np.testing.assert_allclose(await computed(device, values), np.exp(values), 1e-5)

    wait(make())


def test_a_kernel_that_leaves_the_memory_ends_the_device_alone() -> None:
    """It is lost, as in the page: whoever waits hears that, and asks for a new one."""

    async def compute() -> None:
        exponential = await Exponential.create(await request_cpu(2), LARGE)
        plan: Any = exponential.plan
        plan.steps_at = (1 << 32) - 64
        await exponential.start(0.0)

    with pytest.raises(
        GpuDeviceLostError, match=r"failed: wasm trap: out of bounds memory access$"
    ):
        wait(compute())


def test_a_system_without_threads_computes_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(
        native, "threading", SimpleNamespace(Thread=NoThread, Event=threading.Event)
    )
    values = np.linspace(-3, 3, LARGE, dtype=np.float32)

    async def compute() -> Any:
        device = await request_cpu(3)
        found = await computed(device, values)
        device.destroy()
        return found

    np.testing.assert_allclose(wait(compute()), np.exp(values), 1e-5)
