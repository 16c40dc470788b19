"""Steering a model, natively or in the page."""

from typing import Any

import numpy as np

from py_runtime.glass.steering import Steering
from py_runtime.glass.steering_vectors import build_vector, load_vector, save_vector
from py_runtime.gpu import Device
from py_runtime.model import Model


async def steered(
    device: Device,
    where: str,
    prompt: list[int],
    steps: int,
    layer: int,
    vector: np.ndarray,
    off: list[str],
) -> dict[str, Any]:
    """Return logits and greedy tokens of the model: plain, with a vector, and with parts off."""
    before = device.counters.buffer_bytes_alive
    model = await Model.load(device, where)
    steering = Steering.of(model)
    found: dict[str, Any] = {"plain": await model.prefill(prompt)}

    async def look(name: str) -> None:
        found[name] = await model.prefill(prompt)
        found[f"{name} tokens"] = [token async for token in model.greedy(prompt, steps)]

    await steering.add("own", layer, vector, 2.0)
    await look("vector")
    steering.set_strength("own", -1.0)
    await look("changed")
    await model.rebuild(model.graph.device)
    found["again"] = await model.prefill(prompt)
    await steering.add("second", layer, vector, 1.0)
    found["two"] = await model.prefill(prompt)
    await steering.remove("second")
    await steering.remove("own")
    for part in off:
        await steering.turn_off(part)
        await look(part)
        await steering.turn_on(part)
    await steering.turn_off(*off)
    await steering.turn_on()
    found["after"] = await model.prefill(prompt)
    model.unload()
    return {**found, "left": device.counters.buffer_bytes_alive - before}


async def built(
    device: Device,
    where: str,
    positive: list[list[int]],
    negative: list[list[int]],
    layer: int,
) -> dict[str, Any]:
    """Return vectors by each way to build them, and one that went through a file."""
    model = await Model.load(device, where)
    steering = Steering.of(model)
    given = (positive, negative, layer)
    found: dict[str, Any] = {
        f"{how} {position}": await build_vector(model, *given, how, position)
        for how in ("mean", "pca")
        for position in ("last", "mean")
    }
    await steering.add("own", layer, found["mean last"], 3.0)
    found["while steered"] = await build_vector(model, *given)
    data = save_vector(model, "own")
    await steering.remove("own")
    name = await load_vector(model, data)
    kept = steering.vectors[name]
    found["file"] = {"name": name, "layer": kept.layer, "strength": kept.strength}
    found["values"] = kept.values
    model.unload()
    return found
