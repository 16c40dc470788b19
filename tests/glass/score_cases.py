"""Scores, natively or in the page, on behalf of the tests here."""

from dataclasses import asdict
from typing import Any

import numpy as np

from py_runtime.glass.score import score
from py_runtime.gpu import Device
from py_runtime.model import Model

GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 5, "ignore_eos": True}


async def scores(
    device: Device, where: str, tokens: list[int], settings: dict[str, Any], prompt: int
) -> dict[str, Any]:
    """Return a score between two answers, and what these were."""
    model = await Model.load(device, where)
    try:
        first = [t async for piece in model.complete([5, 6, 7], **GREEDY) for t in piece.token_ids]
        held = list(model.session.tokens)
        found = await score(model, tokens, k=4, settings=settings, prompt=prompt)
        _, *rest_of_answer = await score(model, [5, 6, 7, *first], k=2, since=3)
        computed = model.session.computed_tokens
        late = await score(model, [5, 6, 7, *first], k=2, since=4)
        computed = model.session.computed_tokens - computed
        is_left = model.session.tokens == held
        again = [5, 6, 7, *first]
        rest = [t async for piece in model.complete(again, **GREEDY) for t in piece.token_ids]
        model.session.forget()
        plain = [t async for piece in model.complete(again, **GREEDY) for t in piece.token_ids]
        return {
            "scores": [asdict(each) for each in found],
            "late": [asdict(each) for each in late],
            "of_answer": [asdict(each) for each in rest_of_answer],
            "computed": np.array(computed),
            "is_left": is_left,
            "is_same": rest == plain,
        }
    finally:
        model.unload()
