"""The small parts: progress that is told in measure, and work that ends together."""

import asyncio
from typing import Any

import pytest

from py_runtime.base import progress
from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import together, until_cancelled
from py_runtime.base.errors import AbortedError
from py_runtime.base.progress import SECONDS_BETWEEN, Meter
from py_runtime.base.sizes import in_words
from tests.runners import wait


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_progress_is_told_in_measure_and_to_the_end(clock: Clock) -> None:
    told: list[tuple[str, int, int]] = []
    meter = Meter(lambda *row: told.append(row))
    meter.expect("download", "a", 100)
    meter.expect("download", "b", 50)
    for done in range(1, 101):
        meter.reach("download", "a", done)
    assert told == [("download", 1, 150)]
    clock.now += SECONDS_BETWEEN
    meter.reach("download", "b", 10)
    meter.reach("upload", "a", 0)  # another phase has a measure of its own
    meter.reach("download", "b", 50)
    assert told[1:] == [("download", 110, 150), ("upload", 0, 0), ("download", 150, 150)]


def test_what_comes_twice_counts_once(clock: Clock) -> None:
    meter = Meter()
    meter.expect("upload", "a", 100)
    for done in (40, 80, 10, 100):
        meter.reach("upload", "a", done)
    assert meter.done("upload") == 100


def test_together_gives_all_results_in_order() -> None:
    async def both() -> list[int]:
        second_is_done = asyncio.Event()

        async def first() -> int:
            await second_is_done.wait()
            return 1

        async def second() -> int:
            second_is_done.set()
            return 2

        return await together(first(), second())

    assert wait(both()) == [1, 2]


def test_a_failure_stops_the_others_before_it_is_raised() -> None:
    log: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            log.append("slow has cleaned up")

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken on purpose")

    async def both() -> None:
        try:
            await together(slow(), fail())
        finally:
            log.append("raised")

    with pytest.raises(ValueError, match="broken on purpose"):
        wait(both())
    assert log == ["slow has cleaned up", "raised"]


def cancelled(cancel: CancelToken, when: str) -> list[Any]:
    log: list[Any] = []

    async def work() -> str:
        try:
            await (asyncio.sleep(0) if when == "too late" else asyncio.Event().wait())
            return "done"
        finally:
            log.append("cleaned up")

    async def run() -> None:
        if when == "before":
            cancel.cancel()
        if when == "during":
            asyncio.get_running_loop().call_later(0, cancel.cancel)
        log.append(await until_cancelled(work(), cancel))
        cancel.cancel()

    try:
        wait(run())
    except AbortedError as error:
        log.append(error.code)
    return log


def test_a_token_cancels_work() -> None:
    assert cancelled(CancelToken(), "before") == ["aborted"]
    assert cancelled(CancelToken(), "during") == ["cleaned up", "aborted"]
    assert cancelled(CancelToken(), "too late") == ["cleaned up", "done"]


def test_another_cancellation_stays_what_it_is() -> None:
    async def run() -> None:
        task = asyncio.ensure_future(until_cancelled(asyncio.Event().wait(), CancelToken()))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        wait(run())


def test_sizes_in_words() -> None:
    sizes = {0: "0 bytes", 999: "999 bytes", 1234: "1.2 kB", 183_736: "184 kB", 2_518_020: "2.5 MB"}
    assert {size: in_words(size) for size in sizes} == sizes
    assert in_words(97_675_424) == "97.7 MB"
    assert in_words(10**15) == "1000 TB"
