"""Maps of texts, natively or in the page, on behalf of the tests here."""

import asyncio
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError, InpageError
from py_runtime.glass.views.map import map_texts
from py_runtime.gpu import Device
from py_runtime.model import Model

GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 5, "ignore_eos": True}


async def maps(device: Device, where: str, lists: list[list[str]]) -> list[Any]:
    """Return the map of each list twice, and its steps; or what is wrong with it."""
    model = await Model.load(device, where)
    found: list[Any] = []
    try:
        for texts in lists:
            steps: list[tuple[int, int]] = []
            try:
                first = await map_texts(
                    model, texts, progress=lambda *step, steps=steps: steps.append(step)
                )
                again = await map_texts(model, texts)
                found.append({"map": first, "again": again, "steps": [list(s) for s in steps]})
            except InpageError as error:
                found.append({"code": error.code, "message": str(error), **error.facts()})
    finally:
        model.unload()
    return found


async def embeddings(device: Device, where: str, texts: list[str], pooling: str) -> Any:
    """Return a map and the embeddings that the API gives."""
    model = await Model.load(device, where)
    try:
        return {
            "map": await map_texts(model, texts, pooling=pooling),
            "vectors": await model.embed(texts, pooling=pooling),
        }
    finally:
        model.unload()


async def beside_an_answer(device: Device, where: str, texts: list[str]) -> Any:
    """Begin a map while an answer is being written; return the order of what happens, and more."""
    model = await Model.load(device, where)
    events: list[str] = []
    try:
        plain = [piece.token_ids async for piece in model.complete([5, 6, 7], **GREEDY)]
        held = list(model.session.tokens)
        written = []
        mapping: asyncio.Task[Any] | None = None
        async for piece in model.complete([5, 6, 7], **GREEDY):
            written.append(piece.token_ids)
            if mapping is None:
                mapping = asyncio.ensure_future(
                    map_texts(model, texts, progress=lambda *_: events.append("read"))
                )
            await asyncio.sleep(0.01)
            events.append("written")
        assert mapping is not None
        await mapping
        return {
            "events": events,
            "is_same": np.array(sum(plain, ()) == sum(written, ())),
            "is_left": model.session.tokens == held,
        }
    finally:
        model.unload()


async def stopped(device: Device, where: str, texts: list[str], after: int) -> Any:
    """Stop a map after so many steps; return how far it was told to be, and what came of it."""
    model = await Model.load(device, where)
    cancel = CancelToken()
    steps: list[int] = []

    def progress(done: int, total: int) -> None:
        steps.append(done)
        if len(steps) == after:
            cancel.cancel()

    try:
        await map_texts(model, texts, progress=progress, cancel=cancel)
    except AbortedError as error:
        return {"code": error.code, "steps": len(steps), "is_free": not model.idle().locked()}
    finally:
        model.unload()
    return {"code": None}
