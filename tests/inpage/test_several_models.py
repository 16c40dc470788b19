"""Models that `inpage.load` gives share one device, natively; tests/reach has it in the browser."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import inpage
from py_runtime.base.errors import GpuUnavailableError, NoModelError
from py_runtime.devices import one_device
from py_runtime.gpu import CPU, Device, request_device
from py_runtime.model import Model, writer
from tests.runners import NativeRunner, wait
from tests.toy_model import NAME, SECOND, TOKENS, Greedy, greedy_of


class Opened:
    """A count of the devices that are opened; those asked for at once wait for one another."""

    def __init__(self) -> None:
        self.count = 0
        self.fails = 0  # so often

    async def __call__(self) -> Device:
        self.count += 1
        await asyncio.sleep(0)
        if self.fails:
            self.fails -= 1
            raise GpuUnavailableError("the driver sleeps")
        return await request_device()


@pytest.fixture
def opened(native: NativeRunner, monkeypatch: pytest.MonkeyPatch) -> Opened:
    opened = Opened()
    monkeypatch.setattr(one_device, "request_device", opened)
    monkeypatch.setattr(one_device, "_in_use", {})
    return opened


async def tokens(model: Model, asked: Greedy) -> list[int]:
    return [token async for token in model.greedy(asked.prompt, TOKENS)]


Case = Callable[[Model, Model, list[Greedy]], Awaitable[None]]


def with_two(models: Path, case: Case) -> None:
    async def run() -> None:
        paths = [models / NAME, models / SECOND]
        found = await asyncio.gather(*(inpage.load(path) for path in paths))
        first, second = map(writer, found)
        await case(first, second, [greedy_of(path) for path in paths])
        first.unload()
        second.unload()

    wait(run())


def test_both_answer_on_one_device(two_models: Path, opened: Opened) -> None:
    async def case(first: Model, second: Model, right: list[Greedy]) -> None:
        assert first.graph.device is second.graph.device
        both = list(await asyncio.gather(tokens(first, right[0]), tokens(second, right[1])))
        assert both == [each.tokens for each in right]

        device = second.graph.device
        before = device.counters.buffer_bytes_alive
        first.unload()
        assert 0 < device.counters.buffer_bytes_alive < before
        assert await tokens(second, right[1]) == right[1].tokens
        with pytest.raises(NoModelError):
            await tokens(first, right[0])

    with_two(two_models, case)
    assert opened.count == 1


@pytest.mark.thorough  # compiles all kernels anew
def test_a_lost_device_is_replaced_once(two_models: Path, opened: Opened) -> None:
    async def case(first: Model, second: Model, right: list[Greedy]) -> None:
        wanted = [each.tokens for each in right]
        first.graph.device.destroy()
        both = list(await asyncio.gather(tokens(first, right[0]), tokens(second, right[1])))
        assert both == wanted
        assert opened.count == 2
        assert first.graph.device is second.graph.device

    with_two(two_models, case)


@pytest.mark.thorough  # each device compiles all kernels anew
def test_devices_that_are_lost_one_after_the_other(two_models: Path, opened: Opened) -> None:
    async def case(first: Model, second: Model, right: list[Greedy]) -> None:
        wanted = [each.tokens for each in right]
        # One hears of two losses, the other of the second one only when it is asked again.
        first.graph.device.destroy()
        assert await tokens(first, right[0]) == wanted[0]
        first.graph.device.destroy()
        assert await tokens(first, right[0]) == wanted[0]
        assert await tokens(second, right[1]) == wanted[1]
        assert opened.count == 3
        assert first.graph.device is second.graph.device

        # A replacement that was lost before anybody was on it, and one that comes at a second try.
        first.graph.device.destroy()
        (await one_device.replacement(first.graph.device)).destroy()
        opened.fails = 2
        assert await tokens(first, right[0]) == wanted[0]
        assert await tokens(second, right[1]) == wanted[1]

    with_two(two_models, case)


def test_a_gpu_that_does_not_come_back_is_replaced_by_the_cpu(
    two_models: Path, opened: Opened
) -> None:
    async def case(first: Model, second: Model, right: list[Greedy]) -> None:
        first.graph.device.destroy()
        opened.fails = 1000
        assert await tokens(first, right[0]) == right[0].tokens
        assert first.graph.device.kind == CPU
        assert await tokens(second, right[1]) == right[1].tokens
        assert second.graph.device is first.graph.device

    with_two(two_models, case)


@pytest.mark.thorough  # compiles all kernels anew
def test_a_load_onto_a_device_that_was_lost_unnoticed(two_models: Path, opened: Opened) -> None:
    async def run() -> None:
        first = writer(await inpage.load(str(two_models / NAME)))
        first.graph.device.destroy()
        second = writer(await inpage.load(str(two_models / SECOND)))
        for model, path in ((first, two_models / NAME), (second, two_models / SECOND)):
            right = greedy_of(path)
            assert await tokens(model, right) == right.tokens
        assert first.graph.device is second.graph.device
        first.unload()
        second.unload()

    wait(run())
    assert opened.count == 2
