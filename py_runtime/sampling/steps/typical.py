"""Locally typical sampling."""

import numpy as np

from py_runtime.sampling.step import Drawing, Parameter, Step, log_softmax, register_sampler

# Meister et al., "Locally Typical Sampling" (TACL 2023): with the entropy H of the distribution p,
# keep the fewest tokens, by growing |H + log p(token)|, whose probabilities reach `mass`.


@register_sampler(
    "typical",
    "Typical",
    "words whose surprise is about what is expected",
    mass=Parameter(0.95, 0.01, 1.0, "of the probability, kept"),
)
def typical(drawing: Drawing, mass: float) -> Step:
    """Return the step."""

    def step(scores: np.ndarray, tokens: list[int]) -> np.ndarray:
        logs = log_softmax(scores)
        shares = np.exp(logs)
        entropy = -float((shares * np.where(shares > 0, logs, 0)).sum())
        order = np.argsort(np.abs(entropy + logs), kind="stable")
        count = int(np.searchsorted(np.cumsum(shares[order]), mass)) + 1
        kept = np.full(len(scores), -np.inf)
        kept[order[:count]] = scores[order[:count]]
        return kept

    return step
