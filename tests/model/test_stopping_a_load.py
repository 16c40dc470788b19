"""Stop while a model loads: it is heard between any two steps, and nothing is left behind."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from py_runtime.base import concurrency
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError
from py_runtime.cpu.device import CpuDevice
from py_runtime.graph import graph as graphs
from py_runtime.graph import placement
from py_runtime.graph.builder import Builder
from py_runtime.graph.resize import LiveGraph
from py_runtime.model import Model
from tests.runners import CpuRunner, wait

pytestmark = [pytest.mark.built, pytest.mark.torch]

# What takes a while, or is done hundreds of times: (where it is looked up, its name).
STEPS: tuple[tuple[Any, str], ...] = (
    (graphs, "check_program"),
    (graphs, "check_ops"),
    (graphs, "run_passes"),
    (LiveGraph, "__init__"),
    (placement, "plan_buffers"),
    (LiveGraph, "settle"),
)
CLEARED = 1 << 10  # bytes at once, so that the toy's buffers take several steps
STOPS = 12  # over a load

Log = list[tuple[Any, str] | None]  # (task, step); None: the event loop has turned


@pytest.fixture
def log(cpu: CpuRunner, monkeypatch: pytest.MonkeyPatch) -> Log:
    """Have the event loop turn whenever it may, and return what is done in between."""
    done: Log = []

    def logged(name: str, work: Any) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            done.append((asyncio.current_task(), name))
            return work(*given, **named)

        return step

    def each_op(builder: Builder) -> Iterator[None]:
        for _ in build_each_op(builder):
            done.append((asyncio.current_task(), "build an op"))
            yield

    async def put_all(device: CpuDevice, tables: Iterable[tuple[str, Any]]) -> Any:
        def each_table() -> Iterator[tuple[str, Any]]:
            for table in tables:
                done.append((asyncio.current_task(), "put a table"))
                yield table

        return await put_given(device, each_table())

    build_each_op, put_given = Builder.build_each_op, CpuDevice._put_all
    monkeypatch.setattr(Builder, "build_each_op", each_op)
    monkeypatch.setattr(CpuDevice, "_put_all", put_all)
    for place, name in STEPS:
        monkeypatch.setattr(place, name, logged(name, getattr(place, name)))
    machine = cpu.device._machine
    monkeypatch.setattr(machine, "clear", logged("clear", machine.clear))
    monkeypatch.setattr("py_runtime.cpu.device.CLEARED_AT_ONCE", CLEARED)
    monkeypatch.setattr(concurrency, "STRETCH", 0.0)
    return done


async def load(device: Any, where: Path, log: Log, stop_after: int | None = None) -> int:
    """Load and unload; cancel after so many steps. Return how many there were."""
    cancel = CancelToken()
    log.clear()

    def steps() -> int:
        return sum(each is not None for each in log)

    async def watch() -> None:
        while True:
            await asyncio.sleep(0)
            if log and log[-1] is not None:
                log.append(None)
            if stop_after is not None and steps() >= stop_after:
                cancel.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        (await Model.load(device, str(where), cancel=cancel)).unload()
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    return steps()


def test_the_event_loop_turns_between_any_two_steps(
    cpu: CpuRunner, toy_model: Path, log: Log
) -> None:
    wait(load(cpu.device, toy_model, log))
    wait(load(cpu.device, toy_model, log))  # memory that was used is cleared
    seen = {each[1] for each in log if each is not None}
    assert seen == {name for _, name in STEPS} | {"build an op", "put a table", "clear"}
    since: dict[Any, str] = {}  # the last turn, the step of each task
    for each in log:
        if each is None:
            since.clear()
            continue
        task, step = each
        assert task not in since, f"nothing is heard between '{since[task]}' and '{step}'"
        since[task] = step


def test_stop_at_any_moment_leaves_nothing(cpu: CpuRunner, toy_model: Path, log: Log) -> None:
    device = cpu.device
    steps = wait(load(device, toy_model, log))  # its pipelines stay
    before = (device.counters.buffers_alive, device.bytes_left)
    for number in range(STOPS):
        with pytest.raises(AbortedError):
            wait(load(device, toy_model, log, stop_after=number * steps // STOPS))
        assert (device.counters.buffers_alive, device.bytes_left) == before
