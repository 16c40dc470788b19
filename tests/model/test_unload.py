"""What races an unload is told that there is no model, and not of a graph that is gone."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from py_runtime.base.errors import NoModelError
from py_runtime.model import Model
from tests.runners import NativeRunner, wait


async def _answer(model: Model) -> None:
    async for _ in model.complete([5, 6, 7], temperature=0, max_tokens=400, ignore_eos=True):
        await asyncio.sleep(0)


CALLS: dict[str, Callable[[Model], Coroutine[Any, Any, Any]]] = {
    "an answer": _answer,
    "logits": lambda model: model.prefill([5, 6, 7]),
    "a profile": lambda model: model.profile(3),
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
