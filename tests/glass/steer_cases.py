"""Steered models, natively or in the page, on behalf of the tests here."""

from typing import Any

import numpy as np

from py_runtime.glass import steering
from py_runtime.glass.runs import run_with_cache
from py_runtime.gpu import Device
from py_runtime.model import Model

GREEDY: dict[str, Any] = {"temperature": 0, "ignore_eos": True}


async def answer(model: Model, prompt: list[int], count: int) -> list[int]:
    pieces = model.complete(prompt, max_tokens=count, **GREEDY)
    return [token async for piece in pieces for token in piece.token_ids]


async def answers(
    device: Device, where: str, prompt: list[int], edits: list[list[dict[str, Any]]], count: int
) -> dict[str, Any]:
    """Return the answers with each list of edits, and the one after they were cleared."""
    model = await Model.load(device, where)
    try:
        before = await answer(model, prompt, count)
        alive = device.counters.buffers_alive
        own = model.graph
        found = []
        for each in edits:
            await steering.steer(model, each)
            found.append(await answer(model, prompt, count))
        await steering.clear(model)
        assert model.graph is own
        return {
            "before": before,
            "found": found,
            "after": await answer(model, prompt, count),
            "left": np.array(device.counters.buffers_alive - alive),
        }
    finally:
        model.unload()


async def turns(
    device: Device, where: str, prompt: list[int], edit: dict[str, Any], count: int
) -> dict[str, Any]:
    """Return answers of a chat that goes on, of others with nothing cached, and dispatches."""
    model = await Model.load(device, where)

    async def dispatches(prompt: list[int]) -> int:
        """Return how many kernels a token of the answer took; the graph was last resized to one."""
        await answer(model, prompt, count)
        assert model.session.can_loop
        return int(np.count_nonzero(model.graph.live_counts((0,))[:, 0]))

    try:
        plain = await dispatches(prompt)
        await steering.steer(model, [edit])
        steered = await dispatches(prompt)
        first = await answer(model, prompt, count)
        second = await answer(model, [*prompt, *first, 7, 8, 9], count)
        model.session.forget()
        anew = await answer(model, [*prompt, *first, 7, 8, 9], count)
        _, cache = await run_with_cache(model, prompt, edit["hook"], return_type=None)
        await steering.set_strength(model, 0, 0)
        calmed = await answer(model, [*prompt, *first, 7, 8, 9], count)
        await steering.clear(model)
        cleared = await answer(model, [*prompt, *first, 7, 8, 9], count)
        return {
            "dispatches": np.array([plain, steered]),
            "second": second,
            "anew": anew,
            "calmed": calmed,
            "cleared": cleared,
            "cached": cache[edit["hook"]],
        }
    finally:
        model.unload()


async def while_writing(
    device: Device, where: str, prompt: list[int], edit: dict[str, Any], count: int, at: int
) -> list[int]:
    """Return an answer whose edit becomes three times as strong after so many tokens."""
    model = await Model.load(device, where)
    try:
        await steering.steer(model, [edit])
        tokens: list[int] = []
        async for piece in model.complete(prompt, max_tokens=count, logprobs=True, **GREEDY):
            tokens += piece.token_ids
            if len(tokens) == at:
                await steering.set_strength(model, edit["name"], 3 * edit["strength"])
        return tokens
    finally:
        model.unload()


async def after_a_loss(
    device: Device, where: str, prompt: list[int], edit: dict[str, Any], count: int
) -> list[list[int]]:
    """Return an answer, and another one after the graph was built anew."""
    model = await Model.load(device, where)
    try:
        await steering.steer(model, [edit])
        first = await answer(model, prompt, count)
        model.session.forget()
        await model.rebuild(device)
        return [first, await answer(model, prompt, count)]
    finally:
        model.unload()
