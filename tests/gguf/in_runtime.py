"""A GGUF file as a model, natively or in the page, for test_models.py and the tests of families."""

from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.gpu import Device
from py_runtime.model import Model
from py_runtime.model.gguf_store import GgufStore


class BytesSource:
    """A file that is at hand; pieces of it are small."""

    name = "x.gguf"
    is_remote = False

    def __init__(self, data: np.ndarray) -> None:
        self._data = data

    async def size(self) -> int:
        return len(self._data)

    async def read(self, offset: int, nbytes: int) -> bytes:
        return self._data[offset : offset + nbytes].tobytes()

    async def pieces(self, cuts: Sequence[int]) -> AsyncGenerator[tuple[int, np.ndarray], None]:
        for start, end in pairwise(cuts):
            for position in range(start, end, 4000):
                yield position, self._data[position : min(position + 4000, end)]


async def answer(device: Device, data: np.ndarray, prompt: list[int], steps: int) -> dict[str, Any]:
    """Logits after the prompt, a greedy continuation, the first words of a chat, and it again."""
    before = device.counters.buffer_bytes_alive
    model = await Model.load(device, GgufStore("x", [BytesSource(data)]))
    logits = await model.prefill(prompt)
    tokens = [token async for token in model.greedy(prompt, steps)]
    chat = model.chat([{"role": "user", "content": "Ā ā"}], temperature=0, max_tokens=5)
    said = "".join([piece.text async for piece in chat])
    await model.rebuild(device)
    again = [token async for token in model.greedy(prompt, steps)]
    found = {
        "logits": logits,
        "tokens": tokens,
        "again": again,
        "said": said,
        "ends": sorted(model.end_tokens),
        "name": model.manifest.name,
        "ops": len(model.graph.program.ops),
    }
    model.unload()
    found["left"] = device.counters.buffer_bytes_alive - before
    return found


async def greedy(device: Device, data: np.ndarray, prompt: list[int], steps: int) -> dict[str, Any]:
    """Logits after the prompt and a greedy continuation, on behalf of test_mixes.py."""
    before = device.counters.buffer_bytes_alive
    model = await Model.load(device, GgufStore("x", [BytesSource(data)]))
    logits = await model.prefill(prompt)
    tokens = [token async for token in model.greedy(prompt, steps)]
    model.unload()
    left = device.counters.buffer_bytes_alive - before
    return {"logits": logits, "tokens": tokens, "left": left}


async def answers_of_file(
    device: Device,
    data: np.ndarray,
    prompts: list[list[int]],
    steps: int,
    kernels: str | None = None,
) -> dict[str, Any]:
    """Answer with a GGUF file that is at hand."""
    model = await Model.load(device, GgufStore("x", [BytesSource(data)]), kernels=kernels)
    return await answers(device, model, prompts, steps)


async def answers(
    device: Device, model: Model, prompts: list[list[int]], steps: int
) -> dict[str, Any]:
    """Return each prompt's logits and a greedy continuation; the session goes back and forth.

    A prompt is computed anew, then another one that begins alike, then it again: what they share is
    kept, and the rest is written over.
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
    rings = [[ring.rows, ring.window] for ring in model.graph.rings]
    model.unload()
    return {"logits": logits, "tokens": tokens, "dispatches": decoded, "rings": rings}


async def dispatches_of_a_token(device: Device, model: Model) -> int:
    """Count the dispatches while a token is decoded at a short context."""
    inputs = await model.session.inputs([0], 20)
    await model.graph.run(inputs)
    before = device.counters.dispatches
    await model.graph.run(inputs)
    return device.counters.dispatches - before
