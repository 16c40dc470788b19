"""A model with states, asked turn after turn, on behalf of test_states.py."""

from typing import Any

import numpy as np

from py_runtime import gpu
from py_runtime.generation import pace
from py_runtime.gpu import Device
from py_runtime.graph.carried_states import copied_bytes
from py_runtime.model import Model
from py_runtime.model.gguf_store import GgufStore
from tests.generation.in_runtime import FixedPace, Json, ask_model
from tests.gguf.in_runtime import BytesSource

STEPS = 4  # tokens of a batch, whatever time they take


class FixedBatches(pace.BatchPace):
    def begin(self) -> None:
        self.steps = STEPS

    def arrived(self, tokens: int, now: float) -> None:
        pass


async def loaded(device: Device, data: np.ndarray, kv: str | None = None) -> Model:
    return await Model.load(device, GgufStore("x", [BytesSource(data)]), kv=kv)


async def turns(
    device: Device, data: np.ndarray, steps: list[Json], kv: str | None = None
) -> list[Json]:
    """Return one answer after the other; `after` is the answer that the next prompt continues."""
    model = await loaded(device, data, kv)
    answers: list[Json] = []
    for step in steps:
        given = dict(step)
        if "after" in given:
            before = answers[given.pop("after")]
            given["prompt"] = [*before["given"], *before["tokens"], *given.pop("more")]
        found = await ask_model(model, **given, batches=FixedBatches())
        answers.append({**found, "given": given["prompt"]})
    model.unload()
    return answers


async def lose_the_device(device: Device, data: np.ndarray, steps: list[Json]) -> Json:
    """Destroy the device in the middle of an answer."""
    del device  # others still need it
    model = await loaded(await gpu.request_device(), data)
    prompt, fields = steps[0]["prompt"], steps[0]["fields"]
    undisturbed = await ask_model(model, fields, prompt=prompt)
    model.session._pace, model.session.batches = FixedPace(16), FixedBatches()
    tokens: list[int] = []
    async for piece in model.complete(prompt, **fields):
        if not tokens:
            model.graph.device.destroy()
        tokens += piece.token_ids
    afterwards = await ask_model(model, fields, prompt=prompt)
    model.unload()
    return {
        "undisturbed": undisturbed["tokens"],
        "tokens": tokens,
        "afterwards": afterwards["tokens"],
        "buffers": model.graph.device.counters.buffers_alive,
    }


async def memory(device: Device, data: np.ndarray, steps: list[Json]) -> list[Any]:
    """Return the bytes told before the load, those held after it, and those of one copy."""
    model = await loaded(device, data)
    report = model.graph.memory
    held = {"constants": report.constants, "state": report.state}
    found = [model.manifest.gpu_bytes, held, copied_bytes(model.graph.program)]
    model.unload()
    return found
