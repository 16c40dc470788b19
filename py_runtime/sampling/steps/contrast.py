"""Contrast of two prompts: guidance without a classifier."""

import numpy as np

from py_runtime.sampling.step import Drawing, Parameter, Step, log_softmax, register_sampler

# Sanchez et al., "Stay on topic with Classifier-Free Guidance" (ICML 2024): with the log
# probabilities after the prompt and after another one, log p = other + strength (own - other).
# O'Brien and Lewis, "Contrastive Decoding Improves Reasoning" (2023): of the tokens that reach
# `share` of the likeliest one's probability after the prompt alone.


@register_sampler(
    "contrast",
    "Contrast",
    "away from what another system prompt would bring",
    contrasts=True,
    negative=Parameter("", about="the system prompt to stay away from"),
    strength=Parameter(1.5, 0.0, 10.0, "1 changes nothing"),
    share=Parameter(0.1, 0.0, 1.0, "of the likeliest word's probability, that a word must have"),
)
class Contrast(Step):
    """The step; `other` has the logits after the other prompt before each call."""

    def __init__(self, drawing: Drawing, negative: str, strength: float, share: float) -> None:
        self._strength, self._share = strength, share
        self.other: np.ndarray | None = None

    def __call__(self, scores: np.ndarray, tokens: list[int]) -> np.ndarray:
        if self.other is None:
            return scores
        own, other = log_softmax(scores), log_softmax(self.other)
        with np.errstate(invalid="ignore"):  # of tokens that are impossible either way
            mixed = other + self._strength * (own - other)
        unlikely = own < own.max() + np.log(self._share) if self._share else own == -np.inf
        return np.where(unlikely | ~np.isfinite(mixed), -np.inf, mixed)
