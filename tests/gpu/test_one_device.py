"""The one device for all who were on the one that was lost, whenever they notice."""

import asyncio
from typing import Any

import pytest

from py_runtime.gpu import one_device
from tests.runners import wait


class Opened:
    replaced_by: Any = None


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

    monkeypatch.setattr(one_device, "request_device", open_one)
    monkeypatch.setattr(one_device, "_in_use", None)
    monkeypatch.setattr(one_device, "_device_being_opened", None)
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
        first = asyncio.ensure_future(one_device.device_in_use())
        await turns(later)
        return [await one_device.device_in_use(), await first]

    assert wait(ask_twice()) == [devices[0], devices[0]]
    assert len(devices) == 1
