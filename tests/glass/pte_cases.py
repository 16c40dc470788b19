"""Runs of .pte decoders with hooks, on behalf of the tests here."""

from typing import Any

import numpy as np

from py_runtime.glass.runs import run_with_cache
from py_runtime.glass.steering import steered
from py_runtime.gpu import Device
from py_runtime.model import Model


async def runs(device: Device, where: str, tokens: list[int]) -> dict[str, Any]:
    """Return activations, logits after each token by a plain run, and those of a steered one."""
    model = await Model.load(device, where)
    try:
        logits, cache = await run_with_cache(model, tokens)
        assert logits is not None
        plain = [await model.prefill(tokens[: end + 1]) for end in range(len(tokens))]
        vector = -2 * cache["blocks.0.hook_mlp_out"][0, 1]
        async with steered(model, {"hook": "blocks.0.hook_resid_post", "vector": vector}):
            _, other = await run_with_cache(model, tokens, "blocks.0.hook_resid_post")
        difference = other["resid_post", 0] - cache["resid_post", 0]
        return {
            "cache": dict(cache),
            "logits": logits,
            "plain": np.stack(plain)[None],
            "vector": vector,
            "difference": difference,
        }
    finally:
        model.unload()
