"""Code that runs where the engine runs, natively or in the page, for the tests of sampling."""

from typing import Any

import numpy as np

from py_runtime.sampling import Sampler, SamplingSettings, TokenHistory

VOCABULARY = 1000


async def draw_pinned(device: Any, settings: dict[str, Any], count: int) -> list[int]:
    """Tokens from logits that are multiples of 1/128, each token taken into the history."""
    logits = (np.arange(VOCABULARY) * 7919 % 1013 / 128).astype(np.float32)
    sampler = Sampler(SamplingSettings(**settings), VOCABULARY)
    history = TokenHistory([1, 2, 3], VOCABULARY)
    tokens = []
    for _ in range(count):
        tokens.append(sampler.sample(logits, history))
        history.add(tokens[-1])
    return tokens
