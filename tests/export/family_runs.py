"""A model's answers, natively or in the page, on behalf of test_families.py."""

from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.gpu import Device
from py_runtime.model import Model
from py_runtime.model.gguf_store import GgufStore
from tests.gguf.in_runtime import BytesSource


async def answers_of_file(
    device: Device, data: np.ndarray, prompts: list[list[int]], steps: int
) -> dict[str, Any]:
    """Of a GGUF file that is at hand."""
    model = await Model.load(device, GgufStore("x", [BytesSource(data)]))
    return await answers(device, model, prompts, steps)


async def answers(
    device: Device, model: Model, prompts: list[list[int]], steps: int
) -> dict[str, Any]:
    """For each prompt its logits and a greedy continuation; the session goes back and forth.

    A prompt is computed anew, then another one that begins alike, then it again: what they share
    is kept, and the rest is written over.
    """
    logits, tokens = [], []
    for place, prompt in enumerate(prompts):
        model.session.forget()
        at_once = await model.session.logits_after(prompt, CancelToken())
        other = [*prompt[: len(prompt) // 2], *prompts[place - 1]]
        await model.session.logits_after(other, CancelToken())
        held = await model.session.logits_after(prompt, CancelToken())
        logits += [at_once, held]
        tokens.append([token async for token in model.greedy(prompt, steps)])
    decoded = await dispatches_of_a_token(device, model)
    model.unload()
    return {"logits": logits, "tokens": tokens, "dispatches": decoded}


async def dispatches_of_a_token(device: Device, model: Model) -> int:
    """While one is decoded at a short context."""
    inputs = [np.zeros((1, 1), np.int64), np.array([20])]
    await model.graph.run(inputs)
    before = device.counters.dispatches
    await model.graph.run(inputs)
    return device.counters.dispatches - before
