"""Steering vectors and parts that are off, natively or in the page."""

from typing import Any

import numpy as np

from py_runtime.glass.steering import clear, set_strength, steer
from py_runtime.glass.steering_parts import part_edits
from py_runtime.glass.steering_vectors import (
    add_vector,
    build_vector,
    load_vector,
    save_vector,
    vectors_of,
)
from py_runtime.glass.workspace import Workspace
from py_runtime.gpu import Device
from py_runtime.model import Model


async def built(
    device: Device,
    where: str,
    positive: list[list[int]],
    negative: list[list[int]],
    layer: int,
) -> dict[str, Any]:
    """Return vectors by each way to build them, and one that went through a file."""
    model = await Model.load(device, where)
    given = (positive, negative, layer)
    found: dict[str, Any] = {
        f"{how} {position}": await build_vector(model, *given, how, position)
        for how in ("mean", "pca")
        for position in ("last", "mean")
    }
    await add_vector(model, "own", layer, found["mean last"], 3.0)
    found["while steered"] = await build_vector(model, *given)
    data = save_vector(model, "own")
    await clear(model)
    name = await load_vector(model, data)
    kept_layer, edit = vectors_of(model)[name]
    found["file"] = {"name": name, "layer": kept_layer, "strength": edit.strength}
    found["values"] = np.asarray(edit.vector)
    model.unload()
    return found


async def without(
    device: Device, where: str, prompt: list[int], parts: list[str]
) -> dict[str, Any]:
    """Return the logits with each of these parts off."""
    before = device.counters.buffer_bytes_alive
    model = await Model.load(device, where)
    found: dict[str, Any] = {"plain": await model.prefill(prompt)}
    for part in parts:
        await steer(model, part_edits(Workspace.of(model).points, part))
        found[part] = await model.prefill(prompt)
    await clear(model)
    found["after"] = await model.prefill(prompt)
    model.unload()
    return {**found, "left": device.counters.buffer_bytes_alive - before}


async def with_adapter(
    device: Device,
    where: str,
    prompt: list[int],
    files: dict[str, np.ndarray],
    layer: int,
    vector: np.ndarray,
) -> dict[str, Any]:
    """Return logits with an adapter and a vector, whichever came first, and after changes."""
    before = device.counters.buffer_bytes_alive
    model = await Model.load(device, where)
    given = {name: bytes(data) for name, data in files.items()}
    found: dict[str, Any] = {"plain": await model.prefill(prompt)}
    name = await model.adapters.load(given, 0.5)
    await add_vector(model, "own", layer, vector, 2.0)
    found["both"] = await model.prefill(prompt)
    await clear(model)
    found["adapter"] = await model.prefill(prompt)
    await model.adapters.remove(name)
    await add_vector(model, "own", layer, vector, 2.0)
    found["vector"] = await model.prefill(prompt)
    name = await model.adapters.load(given, 0.5)
    found["other way round"] = await model.prefill(prompt)
    model.adapters.set_strength(name, 0)
    found["strength 0"] = await model.prefill(prompt)
    model.adapters.set_strength(name, 0.5)
    await set_strength(model, "own", 0)
    found["vector 0"] = await model.prefill(prompt)
    await set_strength(model, "own", 2.0)
    await model.rebuild(model.graph.device)
    found["rebuilt"] = await model.prefill(prompt)
    found["contrasted"] = [
        token
        async for piece in model.complete(
            prompt,
            sampler={"name": "contrast", "strength": 1.0, "share": 0},
            max_tokens=4,
            seed=1,
        )
        for token in piece.token_ids
    ]
    await model.adapters.remove(name)
    await clear(model)
    found["after"] = await model.prefill(prompt)
    model.unload()
    return {**found, "left": device.counters.buffer_bytes_alive - before}
