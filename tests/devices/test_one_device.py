"""The one device for all who were on the one that was lost, whenever they notice."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from py_runtime.base import notices
from py_runtime.base.errors import RequestError
from py_runtime.devices import one_device
from py_runtime.gpu import CPU, GPU
from tests.runners import wait


class Opened:
    replaced_by: Any = None

    def __init__(self, kind: str = GPU, threads: int | None = None) -> None:
        self.kind = kind
        self.threads = threads
        self.counters = SimpleNamespace(buffers_alive=1)
        self.is_destroyed = False

    def destroy(self) -> None:
        self.is_destroyed = True


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[Opened]:
    """Return the devices that were opened."""
    opened: list[Opened] = []

    async def open_one() -> Opened:
        await turns(2)
        opened.append(Opened())
        return opened[-1]

    async def open_cpu(threads: int | None) -> Opened:
        await turns(2)
        opened.append(Opened(CPU, threads or 2))
        return opened[-1]

    monkeypatch.setattr(one_device, "request_device", open_one)
    monkeypatch.setattr(one_device, "request_cpu", open_cpu)
    monkeypatch.setattr(one_device, "_in_use", {})
    monkeypatch.setattr(one_device, "_being_opened", {})
    return opened


# So many turns of the loop later: before the new one is there, in that moment, or after.
LATER = pytest.mark.parametrize("later", range(8))


@LATER
def test_who_notices_the_loss_later_gets_the_same_device(later: int, devices: list[Opened]) -> None:
    async def replace_twice() -> list[Any]:
        lost: Any = Opened()
        first = asyncio.ensure_future(one_device.replacement(lost))
        await turns(later)
        return [await one_device.replacement(lost), await first]

    assert wait(replace_twice()) == [devices[0], devices[0]]
    assert len(devices) == 1


@LATER
def test_who_loads_later_gets_the_same_device(later: int, devices: list[Opened]) -> None:
    async def ask_twice() -> list[Any]:
        first = asyncio.ensure_future(one_device.device_in_use(GPU))
        await turns(later)
        return [await one_device.device_in_use(GPU), await first]

    assert wait(ask_twice()) == [devices[0], devices[0]]
    assert len(devices) == 1


def test_one_of_each_kind(devices: list[Opened]) -> None:
    async def ask() -> list[Any]:
        return [await one_device.device_in_use(kind) for kind in (GPU, CPU, GPU, CPU)]

    gpu, cpu = devices_of(wait(ask()))
    assert (gpu.kind, cpu.kind, cpu.threads) == (GPU, CPU, 2)
    assert len(devices) == 2


def devices_of(found: list[Any]) -> list[Any]:
    assert found[:2] == found[2:]
    return found[:2]


def test_a_cpu_keeps_its_threads(devices: list[Opened]) -> None:
    async def ask() -> Any:
        cpu: Any = await one_device.device_in_use(CPU, 3)
        assert await one_device.device_in_use(CPU) is cpu
        assert await one_device.device_in_use(CPU, 3) is cpu
        with pytest.raises(RequestError, match="already runs 3 threads") as caught:
            await one_device.device_in_use(CPU, 4)
        assert caught.value.param == "threads"
        assert not devices[-1].is_destroyed
        return await one_device.replacement(cpu)

    another = wait(ask())
    assert (another.kind, another.threads) == (CPU, 3)
    assert len(devices) == 2


def test_a_cpu_without_models_gets_other_threads(devices: list[Opened]) -> None:
    async def ask() -> None:
        before: Any = await one_device.device_in_use(CPU, 3)
        before.counters.buffers_alive = 0
        after = await one_device.device_in_use(CPU, 4)
        assert (after.threads, before.is_destroyed) == (4, True)
        assert one_device.newest(before) is after
        assert await one_device.device_in_use(CPU) is after

    wait(ask())
    assert len(devices) == 2


def test_a_gpu_that_was_given_up_is_replaced_by_the_cpu(devices: list[Opened]) -> None:
    told: list[Any] = []
    stop = notices.listen(told.append)

    async def ask() -> Any:
        gpu = await one_device.device_in_use(GPU)
        first = await one_device.replacement(gpu, by_cpu=True)
        assert await one_device.replacement(gpu) is first, "all others go there, too"
        assert await one_device.device_in_use(CPU) is first
        assert (await one_device.device_in_use(GPU)).kind == GPU, "it was asked for by name"
        return first

    assert wait(ask()).kind == CPU
    stop()
    assert [(notice["kind"], notice["facts"]) for notice in told] == [("moved", {"threads": 2})]
