"""Runs with hooks, natively or in the page, on behalf of the tests here."""

from typing import Any

import numpy as np

from py_runtime.glass.runs import Hook, hooks, run_with_cache, run_with_hooks
from py_runtime.gpu import Device
from py_runtime.model import Model
from py_runtime.passes import DEFAULT_PASSES, run_passes

GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 6, "ignore_eos": True}


async def answer(model: Model, prompt: list[int]) -> list[int]:
    return [t async for piece in model.complete(prompt, **GREEDY) for t in piece.token_ids]


async def cached(
    device: Device, where: str, tokens: list[int], names: Any = None
) -> dict[str, Any]:
    """Return logits and activations of one run, between two turns of a chat."""
    model = await Model.load(device, where)
    try:
        own = model.graph
        plain = run_passes(model.folder.program, own.target, DEFAULT_PASSES)
        first = [*tokens[:5], *await answer(model, tokens[:5])]
        held = list(model.session.tokens)
        before = device.counters.buffer_bytes_alive
        logits, cache = await run_with_cache(model, tokens, names)
        assert logits is not None
        taken = device.counters.buffer_bytes_alive - before
        is_left = model.session.tokens == held
        second = await answer(model, first)
        model.session.forget()
        return {
            "logits": logits,
            "cache": dict(cache),
            "names": list(hooks(model)),
            "taken": np.array(taken),
            "is_left": is_left,
            # A model that nobody looks into is computed as it was before there were views.
            "is_plain": model.graph is own and own.program == plain,
            "is_same": second == await answer(model, first),
        }
    finally:
        model.unload()


async def changed(device: Device, where: str, tokens: list[int]) -> dict[str, Any]:
    """Return logits of runs with functions, each by what it changes."""
    model = await Model.load(device, where)

    def zero_second_head(activation: np.ndarray, hook: Hook) -> np.ndarray:
        activation[:, :, 1] = 0
        return activation

    def negate(activation: np.ndarray, hook: Hook) -> np.ndarray:
        return -activation

    def even_out(pattern: np.ndarray, hook: Hook) -> np.ndarray:
        seen = (pattern > 0).astype(np.float32)
        return seen / seen.sum(-1, keepdims=True)

    try:
        found: dict[str, Any] = {}
        edits: dict[str, Any] = {
            "head": [("blocks.1.attn.hook_z", zero_second_head)],
            "stream": [(("resid_post", 0), negate)],
            "queries": [("blocks.0.attn.hook_q", negate)],
            "hidden": [("blocks.*.mlp.hook_post", negate)],
            "norm": [("blocks.1.ln1.hook_normalized", negate)],
            "pattern": [("blocks.0.attn.hook_pattern", even_out)],
            "nothing": [(lambda name: "hook_" in name, lambda activation, hook: None)],
        }
        for name, fwd_hooks in edits.items():
            found[name] = await run_with_hooks(model, tokens, fwd_hooks)
        _, cache = await run_with_cache(
            model, tokens, ["hook_embed", "resid_post0"], fwd_hooks=edits["stream"]
        )
        found["cached"] = cache["resid_post", 0]
        return found
    finally:
        model.unload()
