"""Answers with and without a draft, on behalf of test_drafts.py."""

from typing import Any

import numpy as np

from py_runtime import gpu
from py_runtime.app.completions import usage_json
from py_runtime.base.errors import InpageError
from py_runtime.gpu import Device
from py_runtime.model import AnyModel, Model, load_model, writer
from py_runtime.model.gguf_store import GgufStore
from tests.generation.in_runtime import Json, ask_model
from tests.gguf.in_runtime import BytesSource


def store(data: np.ndarray, name: str) -> GgufStore:
    return GgufStore(name, [BytesSource(data)])


async def pair(device: Device, data: np.ndarray, draft: np.ndarray) -> Model:
    return writer(await load_model(device, store(data, "Large"), draft=store(draft, "Small")))


async def both_ways(device: Device, data: np.ndarray, draft: np.ndarray, steps: list[Json]) -> Json:
    """Return each answer of the model alone, then with its draft, and the bytes that stay."""
    before = device.counters.buffer_bytes_alive
    models: list[AnyModel] = [await load_model(device, store(data, "Large"))]
    models.append(await pair(device, data, draft))
    answers: list[Json] = []
    for step in steps:
        found: Json = {}
        for name, model in zip(("plain", "drafted"), models, strict=True):
            fields = {"speculate": name == "drafted", **step["fields"]}
            given = {**step, "fields": fields}
            answer = await ask_model(writer(model), **{"forget": True, **given})
            seen = writer(model).session.speculation
            counts = [seen.draft.proposed, seen.draft.accepted]
            found[name] = answer | {"drafted": counts, "verified": seen.proposed}
        answers.append(found)
    for model in models:
        model.unload()
    return {"answers": answers, "left": device.counters.buffer_bytes_alive - before}


async def cached(device: Device, data: np.ndarray, draft: np.ndarray, fields: Json) -> Json:
    """Return what the draft computed for an answer, and for one that continues it."""
    model = await pair(device, data, draft)
    assert model.draft is not None
    session = model.draft.session
    computed, prompt = [], [5 + place % 200 for place in range(60)]
    for more in ([], [7, 8, 9]):
        answer = await ask_model(model, fields, prompt=[*prompt, *more])
        prompt = [*prompt, *more, *answer["tokens"]]
        computed.append(session.computed_tokens)
        assert session.tokens == prompt[: len(session.tokens)], "it follows the answer"
    model.unload()
    return {"computed": computed, "written": len(prompt)}


async def usage_of(device: Device, data: np.ndarray, draft: np.ndarray, fields: Json) -> Json:
    """Return the usage that clients see."""
    model = await pair(device, data, draft)
    async for piece in model.complete([5, 6, 7], **fields):
        last = piece
    model.unload()
    assert last.usage is not None
    return usage_json(last.usage)


async def lose_the_device(
    device: Device, data: np.ndarray, draft: np.ndarray, fields: Json
) -> Json:
    """Destroy the device in the middle of an answer that a draft helps."""
    del device  # others still need it
    model = await pair(await gpu.request_device(), data, draft)
    prompt = [5 + place % 200 for place in range(60)]
    undisturbed = await ask_model(model, fields, prompt=prompt, forget=True)
    model.session.forget()
    lost, tokens = False, list[int]()
    async for piece in model.complete(prompt, **fields):
        tokens += piece.token_ids
        if len(tokens) > 5 and not lost:
            lost = True
            model.graph.device.destroy()
    again = await ask_model(model, fields, prompt=prompt)
    drafted = model.session.speculation.draft.proposed
    model.unload()
    return {
        "undisturbed": undisturbed["tokens"],
        "tokens": tokens,
        "again": again["tokens"],
        "drafted": drafted,
        "buffers": model.graph.device.counters.buffers_alive,
    }


async def refusal(device: Device, data: np.ndarray, draft: np.ndarray) -> Json:
    """Return what is said of a pair that cannot be loaded, and the bytes that stay."""
    before = device.counters.buffer_bytes_alive
    try:
        await pair(device, data, draft)
    except InpageError as error:
        fault: Any = str(error)
    else:
        fault = None
    return {"fault": fault, "left": device.counters.buffer_bytes_alive - before}
