"""Answers with and without proposals, on behalf of test_speculation.py."""

import asyncio
from typing import Any
from unittest.mock import patch

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.generation.device_sampler import DeviceSampler
from py_runtime.generation.verifier import Verifier
from py_runtime.gpu import Device
from py_runtime.model import Model
from tests.generation.in_runtime import STOP_PATIENCE, Json, ask_model, the_model
from tests.generation.state_cases import loaded


async def both_ways(device: Device, where: str, steps: list[Json]) -> list[Json]:
    """Return each answer without proposals, then with them wherever there are some."""
    return await _both_ways(await the_model(device, where), steps)


async def both_ways_of(device: Device, data: np.ndarray, steps: list[Json]) -> list[Json]:
    """Do the same with a GGUF file's model."""
    model = await loaded(device, data)
    try:
        return await _both_ways(model, steps)
    finally:
        model.unload()


async def _both_ways(model: Model, steps: list[Json]) -> list[Json]:
    found = []
    for step in steps:
        answers = []
        for speculate in (False, True):
            fields = {**step["fields"], "speculate": speculate}
            answer = await ask_model(model, **{**step, "fields": fields}, forget=True)
            seen = model.session.speculation
            answers.append(answer | {"verified": [seen.proposed, seen.accepted]})
        found.append({"plain": answers[0], "verified": answers[1]})
    return found


async def rows_and_steps(device: Device, where: str, tokens: list[int], sizes: list[int]) -> Any:
    """Return the logits of a text's last tokens one by one, and of several tokens a call."""
    model = await the_model(device, where)
    graph, start = model.graph, len(tokens) - sum(sizes)
    loop = await model.session.decode_loop()
    verifier = await Verifier.create(graph, loop.sampler)
    await graph.compute([np.array([tokens[:start]]), np.array([0])], [])
    alone = [
        (await graph.run([np.array([[token]]), np.array([start + at])]))[0][0]
        for at, token in enumerate(tokens[start:])
    ]
    together: list[np.ndarray] = []
    for size in sizes:
        given = tokens[start : start + size]
        (rows,) = await verifier.graph.run([np.array([given]), np.array([start])])
        together += list(rows)
        start += size
    verifier.unload()
    model.session.forget()
    return [np.stack(alone), np.stack(together)]


async def stop_while_building(
    device: Device, where: str, steps: list[Json], part: str
) -> tuple[str | None, list[int], list[Json]]:
    """Stop while a part of what an answer needs is built, for ever as it seems.

    Return how that answer ended, how many buffers there were before and after it, and the same
    answer both ways.
    """
    model = await the_model(device, where)
    model.session.drop_loop()
    cancel, building = CancelToken(), asyncio.Event()
    kind, name = {"loop": (DeviceSampler, "_compile"), "verifier": (DeviceSampler, "step_from")}[
        part
    ]
    real, begun = getattr(kind, name), []

    async def never(*given: Any) -> Any:
        begun.append(given)
        if part == "verifier" and len(begun) == 1:
            return await real(*given)  # of the loop
        building.set()
        await asyncio.get_running_loop().create_future()

    async def answer() -> str | None:
        (step,) = steps
        fields = {**step["fields"], "speculate": True}
        async for piece in model.complete(step["prompt"], cancel=cancel, **fields):
            last = piece
        return last.finish_reason

    before = device.counters.buffers_alive
    with patch.object(kind, name, never):
        stopped = asyncio.ensure_future(answer())
        await building.wait()
        cancel.cancel()
        ended = await asyncio.wait_for(stopped, STOP_PATIENCE)
    model.session.drop_loop()
    buffers = [before, device.counters.buffers_alive]
    return ended, buffers, await _both_ways(model, steps)


async def both_texts(device: Device, where: str, texts: list[str]) -> list[list[list[int]]]:
    """Return the tokens that continue each text, greedy and drawn, in each way."""
    model = await Model.load(device, where)
    found = []
    for text in texts:
        drawn: dict[str, Any] = {"temperature": 0.8, "top_p": 0.95, "seed": 4}
        for settings in ({"temperature": 0}, drawn):
            answers = []
            for speculate in (False, "auto", True):
                fields: dict[str, Any] = {
                    **settings,
                    "max_tokens": 40,
                    "ignore_eos": True,
                    "speculate": speculate,
                }
                model.session.forget()
                tokens: list[int] = []
                async for piece in model.complete(text, **fields):
                    tokens += piece.token_ids
                answers.append(tokens)
            found.append(answers)
    model.unload()
    return found
