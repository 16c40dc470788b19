"""Calls that race an unload: they hear that there is no model, not about a graph that is gone."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from py_runtime.base.errors import GpuDeviceLostError, NoModelError
from py_runtime.gpu import Device
from py_runtime.model import Model
from py_runtime.model.verify import verify
from tests.runners import NativeRunner, wait


async def _answer(model: Model) -> None:
    async for _ in model.complete([5, 6, 7], temperature=0, max_tokens=400, ignore_eos=True):
        await asyncio.sleep(0)


CALLS: dict[str, Callable[[Model], Coroutine[Any, Any, Any]]] = {
    "an answer": _answer,
    "logits": lambda model: model.prefill([5, 6, 7]),
    "a profile": lambda model: model.profile(3),
    "a verification": verify,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_waited_for_its_turn(name: str, native: NativeRunner, toy_model: Path) -> None:
    async def race() -> None:
        model = await Model.load(native.device, str(toy_model))
        async with model.idle():
            waiting = asyncio.ensure_future(CALLS[name](model))
            await asyncio.sleep(0)
            model.unload()
        await waiting

    with pytest.raises(NoModelError):
        wait(race())


def test_an_answer_that_is_being_written(native: NativeRunner, toy_model: Path) -> None:
    async def race() -> None:
        model = await Model.load(native.device, str(toy_model))
        async for _ in model.complete([5], temperature=0, max_tokens=400, ignore_eos=True):
            model.unload()

    with pytest.raises(NoModelError):
        wait(race())


def test_a_verification_that_is_under_way(native: NativeRunner, toy_model: Path) -> None:
    async def race() -> None:
        model = await Model.load(native.device, str(toy_model))

        def unload(phase: str, done: int, total: int) -> None:
            if phase == "logits":
                model.unload()

        await verify(model, unload)

    with pytest.raises(NoModelError):
        wait(race())


def test_a_device_lost_meanwhile_brings_no_model_back(
    native: NativeRunner, toy_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that waits to replace the device may get its turn when the model is gone."""

    async def same_device() -> Device:
        return native.device

    async def race() -> None:
        model = await Model.load(native.device, str(toy_model))
        model.session.device.lose(GpuDeviceLostError("the GPU device was lost"))
        async with model.idle():
            waiting = asyncio.ensure_future(
                model.session.device.survive(lambda: verify(model), alone=model.idle())
            )
            await asyncio.sleep(0)
            model.unload()
        await waiting

    monkeypatch.setattr("py_runtime.devices.one_device.request_device", same_device)
    before = native.device.counters.buffers_alive
    with pytest.raises(NoModelError):
        wait(race())
    assert native.device.counters.buffers_alive == before
