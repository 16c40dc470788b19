"""Log probabilities of the model's own distribution, before any setting changes it."""

from dataclasses import dataclass

import numpy as np

from py_runtime.sampling.candidates import without_faults
from py_runtime.sampling.narrow import largest

IMPOSSIBLE = -9999.0  # in place of -inf, which JSON lacks; OpenAI's value for the same


@dataclass(frozen=True)
class TokenLogprob:
    """The log probability of the chosen token, and of the most probable ones."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]  # (token, logprob), the most probable first


def logprobs(logits: np.ndarray, token: int, top: int) -> TokenLogprob:
    """Compute log probabilities from logits f32 [V]; among equal ones the lower id comes first."""
    scores = without_faults(logits)
    peak = float(scores.max())
    weights = np.subtract(scores, peak, dtype=np.float64)
    normaliser = peak + float(np.log(np.exp(weights, out=weights).sum()))

    def logprob(of: int) -> float:
        return max(float(scores[of]) - normaliser, IMPOSSIBLE)

    near = largest(scores, top) if top else np.arange(0)
    best = near[np.argsort(-scores[near], kind="stable")[:top]].tolist()
    return TokenLogprob(token, logprob(token), tuple((found, logprob(found)) for found in best))
