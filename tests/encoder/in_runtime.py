"""Text encoders, natively or in the page, on behalf of the tests here."""

from operator import truediv as divide
from typing import Any

import numpy as np

from py_runtime import gpu
from py_runtime.app.embeddings import create_embeddings
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError
from py_runtime.glass.views.map import map_texts
from py_runtime.gpu import Device
from py_runtime.model import Encoder, Model, load_model
from py_runtime.model.checkpoint_store import CheckpointStore
from py_runtime.model.gguf_store import GgufStore
from py_runtime.model.stores import Store
from py_runtime.weights.byte_source import MissingFileError
from tests.gguf.in_runtime import BytesSource

NAME = "small-encoder"


class MissingSource(BytesSource):
    """A file that is not there."""

    async def size(self) -> int:
        raise MissingFileError("it is not there")


def store_of(files: Any) -> Store:
    """Return the store of a checkpoint's files by name, or of a GGUF file's bytes."""
    if isinstance(files, np.ndarray):
        return GgufStore(NAME, [BytesSource(files)])

    def find(name: str) -> BytesSource:
        return BytesSource(files[name]) if name in files else MissingSource(np.zeros(0, np.uint8))

    return CheckpointStore(NAME, find)


async def load(device: Device, files: Any) -> Encoder:
    found = await load_model(device, store_of(files))
    assert isinstance(found, Encoder)
    return found


async def embed(device: Device, files: Any, batches: list[Any], poolings: list[str]) -> Any:
    """Vectors of each batch on one graph, by pooling; again after a rebuild; and what is left."""
    before = device.counters.buffer_bytes_alive
    encoder = await load(device, files)
    vectors = {
        name: [await encoder.embed(batch, pooling=name) for batch in batches] for name in poolings
    }
    await encoder.rebuild(device)
    again = await encoder.embed(batches[0], pooling=poolings[0])
    encoder.unload()
    left = device.counters.buffer_bytes_alive - before
    return {"vectors": vectors, "again": again, "left": left, "context": encoder.context}


async def runs_of(device: Device, files: Any, texts: list[list[int]]) -> list[Any]:
    """Return the sizes [B, S] of the graph's runs for these texts, and their vectors."""
    encoder = await load(device, files)
    sizes: list[list[int]] = []
    run = encoder.graph.run

    async def noted(inputs: Any, *others: Any) -> Any:
        sizes.append(list(inputs[0].shape))
        return await run(inputs, *others)

    graph: Any = encoder.graph
    graph.run = noted
    vectors = await encoder.embed(texts)
    encoder.unload()
    return [sizes, vectors]


async def lose_the_device(device: Device, files: Any, texts: list[list[int]]) -> Any:
    """Vectors before a loss, and after one that no caller hears of; and what is left."""
    del device  # others still need it
    encoder = await load(await gpu.request_device(), files)
    before = await encoder.embed(texts)
    encoder.graph.device.destroy()
    after = await encoder.embed(texts)
    taken = encoder.graph.device
    encoder.unload()
    return {"before": before, "after": after, "left": taken.counters.buffer_bytes_alive}


async def requests(device: Device, files: Any, requests: list[Any]) -> list[Any]:
    """Return what OpenAI's API answers to each."""
    encoder = await load(device, files)
    answers = []
    for fields in requests:
        try:
            answers.append(await create_embeddings(encoder, fields, CancelToken()))
        except InpageError as error:
            answers.append({"code": error.code, "message": str(error), **error.facts()})
    encoder.unload()
    return answers


async def refusals(device: Device, files: Any) -> list[str]:
    """Return what an encoder says to those who ask it for text."""
    encoder = await load(device, files)
    said = []

    async def chat() -> None:
        async for _ in encoder.chat([{"role": "user", "content": "Hello"}]):
            pass

    async def complete() -> None:
        async for _ in encoder.complete("Once"):
            pass

    async def load_to_write() -> None:
        await Model.load(device, store_of(files))

    for work in (chat, complete, load_to_write):
        try:
            await work()
        except InpageError as error:
            said.append(f"{error.code}: {error}")
    encoder.unload()
    return said


async def fault_of(device: Device, files: Any) -> str:
    """Return why a model cannot be loaded."""
    try:
        (await load_model(device, store_of(files))).unload()
    except InpageError as error:
        return str(error)
    return ""


async def mapped(device: Device, files: Any, texts: list[str]) -> Any:
    """Return the map of texts, and their vectors."""
    encoder = await load(device, files)
    steps: list[float] = []
    try:
        found = await map_texts(encoder, texts, progress=lambda *step: steps.append(divide(*step)))
        short = [text for text in texts if text and not found["is_cut"].any()]
        vectors = await encoder.embed(short) if short else None
        return {"map": found, "vectors": vectors, "steps": steps}
    finally:
        encoder.unload()


async def asked_by_a_page(device: Device, files: Any, texts: list[str]) -> Any:
    """Return a map as pages ask for it, and what is said to who wants to look into an encoder."""
    from py_runtime.app.glass_calls import call_view  # needs a browser's bridge

    encoder = await load(device, files)
    try:
        found = await call_view(encoder, "map", {"texts": texts}, lambda _: None, CancelToken())
        try:
            await call_view(encoder, "hooks", {}, lambda _: None, CancelToken())
        except InpageError as error:
            return {"map": found, "said": str(error)}
    finally:
        encoder.unload()
