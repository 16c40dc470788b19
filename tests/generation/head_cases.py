"""A head that foresees tokens, on behalf of test_heads.py."""

from typing import Any
from unittest.mock import patch

import numpy as np

from py_runtime.app.model_facts import describe_model
from py_runtime.base.errors import GpuOutOfMemoryError
from py_runtime.generation.draft import Draft
from py_runtime.gpu import Device
from py_runtime.model.head import Head
from tests.generation.draft_cases import pair
from tests.generation.in_runtime import Json, ask_model
from tests.generation.state_cases import loaded


async def foreseen(
    device: Device, data: np.ndarray, text: list[int], sizes: list[int], more: int
) -> list[np.ndarray]:
    """Return the head's logits after calls of these sizes, then of so many further tokens."""
    model = await loaded(device, data)
    assert model.head is not None
    head, start, found = model.head.graph, 0, []
    for size in sizes:
        here, behind = text[start : start + size], text[start + 1 : start + size + 1]
        await model.graph.compute([np.array([here]), np.array([start])], [])
        found += await head.run([np.array([behind]), np.array([start])])
        start += size
    for position in range(start, start + more):
        likeliest = found[-1].argmax(axis=-1, keepdims=True)
        found += await head.run([likeliest, np.array([position])])
    model.unload()
    return found


async def proposed(
    device: Device, data: np.ndarray, prompts: list[list[int]], fields: Json
) -> list[tuple[list[int], list[int]]]:
    """Return what the head proposed in answers to these prompts, and the text that was behind."""
    model, found, real = await loaded(device, data), [], Draft.propose

    async def propose(self: Draft, answer: list[int], *given: Any) -> list[int]:
        tokens = await real(self, answer, *given)
        text = [*self._prompt, *answer]
        assert self._model.session.tokens == text[1:], "it holds nothing of its own making"
        found.append((text, tokens))
        return tokens

    with patch.object(Draft, "propose", propose):
        for prompt in prompts:
            await ask_model(model, fields, prompt=prompt)
    model.unload()
    return found


async def facts(device: Device, data: np.ndarray, is_full: bool = False) -> Json:
    """Return what is known of a model's head, and the bytes that stay when it is unloaded.

    `is_full`: there is no room for it.
    """

    async def fails(*given: object) -> None:
        raise GpuOutOfMemoryError("the device is full")

    before = device.counters.buffer_bytes_alive
    with patch.object(Head, "load", fails if is_full else Head.load):
        model = await loaded(device, data)
    graphs = [model.graph, *([] if model.head is None else [model.head.graph])]
    reports = [graph.memory for graph in graphs]
    found: Json = {
        "head": describe_model(model)["head"],
        "peak": 0 if model.head is None else model.head.graph.memory.peak,
        "told": model.manifest.gpu_bytes,
        "held": sum(report.constants + report.state for report in reports),
        "tokens": [token async for token in model.greedy([3, 10, 24], 4)],
    }
    model.unload()
    return {**found, "left": device.counters.buffer_bytes_alive - before}


async def by_itself(
    device: Device, data: np.ndarray, prompt: list[int], fields: Json
) -> list[Json]:
    """Return an answer without proposals, and one where what they gain decides on them."""
    model = await loaded(device, data)
    ways = [{**fields, "speculate": speculate} for speculate in (False, "auto")]
    answers = [await ask_model(model, way, prompt=prompt, forget=True) for way in ways]
    model.unload()
    return answers


async def with_draft(device: Device, data: np.ndarray, draft: np.ndarray, fields: Json) -> Json:
    """Return the answer of a model with a head that is given a draft as well."""
    model = await pair(device, data, draft)
    answer = await ask_model(model, fields, prompt=[5, 6, 7])
    found = {**answer, "has_head": model.head is not None, "facts": describe_model(model)["head"]}
    model.unload()
    return found
