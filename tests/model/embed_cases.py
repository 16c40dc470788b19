"""Embeddings, natively or in the page, on behalf of the tests here."""

from typing import Any

import numpy as np

from py_runtime.app.embeddings import create_embeddings
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError
from py_runtime.gpu import Device
from py_runtime.model import Model

GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 5, "ignore_eos": True}


async def embed(device: Device, where: str, inputs: list[Any], poolings: list[str]) -> Any:
    """Vectors [inputs, W] of each pooling, on one graph; and whether answers notice."""
    model = await Model.load(device, where)
    try:
        before = [piece.token_ids async for piece in model.complete([5, 6, 7], **GREEDY)]
        found = {name: await model.embed(inputs, pooling=name) for name in poolings}
        after = [piece.token_ids async for piece in model.complete([5, 6, 7], **GREEDY)]
        return {"vectors": found, "is_same": np.array(sum(before, ()) == sum(after, ()))}
    finally:
        model.unload()


async def requests(device: Device, where: str, requests: list[Any]) -> list[Any]:
    """Return what OpenAI's API answers to each."""
    model = await Model.load(device, where)
    answers = []
    for fields in requests:
        try:
            answers.append(await create_embeddings(model, fields, CancelToken()))
        except InpageError as error:
            answers.append({"code": error.code, "message": str(error), **error.facts()})
    model.unload()
    return answers
