"""Rerankers, natively or in the page, on behalf of the tests here."""

from typing import Any

from py_runtime.app.rerank import create_ranking
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError
from py_runtime.gpu import Device
from tests.encoder.in_runtime import load


async def rank(device: Device, files: Any, requests: list[Any]) -> list[Any]:
    """Return the ranking of each request, or what is wrong with it."""
    encoder = await load(device, files)
    answers: list[Any] = []
    for fields in requests:
        try:
            answers.append(await create_ranking(encoder, fields, CancelToken()))
        except InpageError as error:
            answers.append(str(error))
    try:
        await encoder.embed("a text")
    except InpageError as error:
        answers.append(str(error))
    encoder.unload()
    return answers
