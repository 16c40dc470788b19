"""Sparse autoencoders over a model, natively or in the page, on behalf of the tests here."""

from typing import Any

import numpy as np

from py_runtime.glass.autoencoders.autoencoder import load_autoencoder
from py_runtime.glass.edits import Edit
from py_runtime.glass.runs import run_with_cache
from py_runtime.glass.steering import clear, set_strength, steer
from py_runtime.glass.views.features import feature_edit, features, promoted
from py_runtime.gpu import Device
from py_runtime.model import Model

FEATURE = 11


async def looked_at(
    device: Device, where: str, tokens: list[int], files: dict[str, np.ndarray], hook: str
) -> dict[str, Any]:
    """Return the features of a text, what some of them promote, and steered logits."""
    before = device.counters.buffer_bytes_alive
    model = await Model.load(device, where)
    given = {name: bytes(data) for name, data in files.items()}
    autoencoder = await load_autoencoder(given)
    _, cache = await run_with_cache(model, tokens, hook, return_type=None)
    x = cache[hook][0].reshape(len(tokens), -1)
    whole = await autoencoder.encode(x)
    steps: list[list[int]] = []
    found: dict[str, Any] = {
        "x": x,
        "whole": whole,
        "rebuilt": await autoencoder.decode(whole, x),
        "hook": autoencoder.hook,
        "kind": autoencoder.kind,
        "view": await features(
            model,
            tokens,
            autoencoder,
            hook=hook,
            positions=[0, 3, -1],
            k=4,
            watch=[FEATURE],
            progress=lambda done, total: steps.append([done, total]),
        ),
        "promoted": await promoted(model, autoencoder, [FEATURE, 3], hook=hook, k=3),
    }
    await steer(model, await feature_edit(model, autoencoder, FEATURE, 2.0, hook=hook))
    found["steered"] = await model.prefill(tokens)
    row = await autoencoder.direction(FEATURE)
    await steer(model, Edit(hook, vector=row, strength=2.0))
    found["same edit"] = await model.prefill(tokens)
    await steer(model, await feature_edit(model, autoencoder, FEATURE, 2.0, hook=hook))
    await set_strength(model, f"{autoencoder.name} · {FEATURE}", 0)
    found["strength 0"] = await model.prefill(tokens)
    await clear(model)
    found["plain"] = await model.prefill(tokens)
    model.unload()
    return {**found, "steps": steps, "left": device.counters.buffer_bytes_alive - before}
