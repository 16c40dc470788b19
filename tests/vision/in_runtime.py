"""Models that see, natively or in the page, on behalf of the tests here."""

from typing import Any

import numpy as np

from py_runtime.app.completions import Completion
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError
from py_runtime.gpu import Device
from py_runtime.model import Model
from py_runtime.model.gguf_store import GgufStore
from py_runtime.model.seeing_checkpoint import SeeingCheckpointStore
from py_runtime.vision.picture import picture_of
from py_runtime.weights.byte_source import MissingFileError
from tests.gguf.in_runtime import BytesSource

COUNT = 32


Files = list[np.ndarray] | dict[str, np.ndarray]  # bytes


class MissingSource(BytesSource):
    """A file that is not there."""

    async def size(self) -> int:
        raise MissingFileError("it is not there")


async def load(device: Device, files: Files) -> Model:
    """Load a GGUF file and the mmproj file that may lie beside it, or a checkpoint's files."""
    if isinstance(files, list):
        first, *others = map(BytesSource, files)
        for other in others:
            other.name = "mmproj-x.gguf"
        return await Model.load(device, GgufStore("small", [first, *others]))

    def find(name: str) -> BytesSource:
        return BytesSource(files[name]) if name in files else MissingSource(np.zeros(0, np.uint8))

    return await Model.load(device, SeeingCheckpointStore("small", find))


def messages_of(turns: list[Any], images: list[np.ndarray]) -> list[Any]:
    """Return messages by turns: each has texts, and numbers of images."""
    roles = ("user", "assistant")
    return [
        {"role": roles[at % 2], "content": [_part(part, images) for part in turn]}
        for at, turn in enumerate(turns)
    ]


def _part(part: Any, images: list[np.ndarray]) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image", "image": images[part]}


async def see(
    device: Device, files: Files, images: list[np.ndarray], chats: list[Any]
) -> dict[str, Any]:
    """Return the rows of images, and greedy answers to chats, one after the other; what is left."""
    before = device.counters.buffer_bytes_alive
    model = await load(device, files)
    assert model.image_rows is not None, "it sees"
    answers = [await _greedy(model, messages_of(turns, images)) for turns in chats]
    rows = []
    for image in images:
        rows.append(await model.image_rows.rows(picture_of({"type": "image", "image": image}, "x")))
    await model.rebuild(device)
    model.session.forget()
    again = await _greedy(model, messages_of(chats[0], images))
    model.unload()
    left = device.counters.buffer_bytes_alive - before
    return {"rows": rows, "answers": answers, "again": again, "left": left}


async def _greedy(model: Model, messages: list[Any]) -> dict[str, Any]:
    tokens: list[int] = []
    usage: Any = None
    async for piece in model.chat(messages, temperature=0, max_tokens=COUNT, ignore_eos=True):
        tokens += piece.token_ids
        usage = piece.usage or usage
    return {
        "tokens": tokens,
        "prompt": usage.prompt_tokens,
        "cached": usage.cached_tokens,
        "saw": 0 < usage.images_s < usage.time_to_first_token_s,
    }


async def decoded(device: Device, files: list[np.ndarray]) -> list[Any]:
    """Return the pixels of image files, or why there are none."""
    found: list[Any] = []
    for data in files:
        try:
            found.append(await picture_of({"type": "image", "image": data.tobytes()}, "x").pixels())
        except InpageError as error:
            found.append(str(error))
    return found


async def requests(device: Device, files: Files, requests: list[Any]) -> list[Any]:
    """Return what OpenAI's API answers to each."""
    model = await load(device, files)
    answers: list[Any] = []
    for fields in requests:
        try:
            answer = await Completion(model, fields, is_chat=True).answer(CancelToken())
            answers.append(answer["usage"]["prompt_tokens"])
        except InpageError as error:
            answers.append(str(error))
    model.unload()
    return answers


async def fault_of(device: Device, files: Files) -> str:
    """Return why a model cannot be loaded, and that nothing of it is left."""
    before = device.counters.buffer_bytes_alive
    try:
        (await load(device, files)).unload()
    except InpageError as error:
        assert device.counters.buffer_bytes_alive == before
        return str(error)
    return ""
