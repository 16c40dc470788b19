"""A model with adapters, natively or in the page."""

from typing import Any

import numpy as np

from py_runtime.gpu import Device
from py_runtime.model import Model
from py_runtime.model.gguf_store import GgufStore
from tests.gguf.in_runtime import BytesSource


async def adapted(
    device: Device,
    prompt: list[int],
    steps: int,
    adapters: list[dict[str, Any]],
    data: np.ndarray | None = None,
    where: str = "",
) -> dict[str, Any]:
    """Return logits and greedy tokens before, with all adapters, at other strengths, and after."""
    before = device.counters.buffer_bytes_alive
    model = await Model.load(device, where if data is None else GgufStore("x", [BytesSource(data)]))
    found: dict[str, Any] = {"plain": await model.prefill(prompt)}
    names = []
    for given in adapters:
        files = {name: bytes(part) for name, part in given["files"].items()}
        names.append(await model.adapters.load(files, given["strength"]))
    found["logits"] = await model.prefill(prompt)
    found["tokens"] = [token async for token in model.greedy(prompt, steps)]
    for name in names:
        model.adapters.set_strength(name, 2 * model.adapters.strengths[name])
    found["doubled_tokens"] = [token async for token in model.greedy(prompt, steps)]
    found["doubled"] = await model.prefill(prompt)
    await model.rebuild(model.graph.device)
    found["again"] = await model.prefill(prompt)
    for name in names:
        model.adapters.set_strength(name, 0)
    found["without"] = await model.prefill(prompt)
    for name in names:
        await model.adapters.remove(name)
    found["removed"] = await model.prefill(prompt)
    model.unload()
    return {**found, "names": names, "left": device.counters.buffer_bytes_alive - before}
