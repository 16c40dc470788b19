"""XTC: exclude top choices."""

import numpy as np

from py_runtime.sampling.step import Drawing, Parameter, Step, log_softmax, register_sampler

# p-e-w, "Exclude Top Choices (XTC)" (text-generation-webui, pull request 6335, 2024): with the
# given probability, drop every token that reaches the threshold but the least likely of them.


@register_sampler(
    "xtc",
    "XTC",
    "sometimes leaves out the most likely words",
    threshold=Parameter(0.1, 0.0, 0.5, "probability from which a word is a top choice"),
    probability=Parameter(0.5, 0.0, 1.0, "how often they are left out"),
)
def xtc(drawing: Drawing, threshold: float, probability: float) -> Step:
    """Return the step."""

    def step(scores: np.ndarray, tokens: list[int]) -> np.ndarray:
        if drawing.random.random() >= probability:
            return scores
        shares = np.exp(log_softmax(scores))
        top = np.flatnonzero(shares >= threshold)
        if len(top) < 2:
            return scores
        kept = scores.copy()
        kept[np.delete(top, shares[top].argmin())] = -np.inf
        return kept

    return step
