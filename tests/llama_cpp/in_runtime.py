"""The engine's side of the comparison, natively or in the page."""

from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.gpu import Device
from py_runtime.model import Model


async def follow(
    device: Device,
    where: str,
    prompts: list[list[int]],
    continuations: list[list[int]],
    texts: list[str],
) -> dict[str, Any]:
    """Return what the engine says of a file.

    `logits` [steps, vocabulary] are those before each token of the continuation that is given for a
    prompt, so that one step where two tokens are all but equal does not spoil the steps after it.
    `greedy` is the engine's own continuation, and `texts` are their tokens.
    """
    model = await Model.load(device, where)
    try:
        logits, greedy = [], []
        for prompt, given in zip(prompts, continuations, strict=True):
            model.session.forget()
            rows = [
                await model.session.logits_after([*prompt, *given[:step]], CancelToken())
                for step in range(len(given))
            ]
            logits.append(np.stack(rows))
            greedy.append([token async for token in model.greedy(prompt, len(given))])
        tokens = [model.tokenizer.encode(text, add_special_tokens=False) for text in texts]
        return {"logits": logits, "greedy": greedy, "texts": tokens}
    finally:
        model.unload()
