"""The sampler: logit bias → penalties → mask → temperature → top_k → top_p → min_p → draw."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.sampling.adjust import Adjustment
from py_runtime.sampling.candidates import Candidates, greedy, without_faults
from py_runtime.sampling.history import TokenHistory
from py_runtime.sampling.settings import SamplingSettings


class Sampler:
    """A sampler with its own random generator: one seed gives the same tokens on every machine."""

    def __init__(self, settings: SamplingSettings, vocabulary: int) -> None:
        settings.check(vocabulary)
        self._settings = settings
        self._adjustment = Adjustment(settings)
        # numpy takes no negative seeds, and OpenAI does.
        seed = None if settings.seed is None else int(settings.seed) % 2**64
        self._random = np.random.Generator(np.random.PCG64(seed))

    @property
    def random(self) -> "np.random.Generator":
        """The generator that tokens are drawn with, for steps that draw, too."""
        return self._random

    def sample(
        self,
        logits: np.ndarray,
        history: TokenHistory,
        allowed: np.ndarray | None = None,
        steps: Sequence[Callable[[np.ndarray], np.ndarray]] = (),
    ) -> int:
        """Choose a token from logits f32 [V], which stay as they are; allowed: bool [V].

        `steps` change scores float64 [V] before they are narrowed.
        """
        scores = self._adjustment.scores(logits, history)
        if steps:
            scores = without_faults(scores).astype(np.float64)
            if allowed is not None:
                scores[~allowed] = -np.inf
        for step in steps:
            scores = _sound(step(scores), len(logits))
        if self._settings.temperature == 0:
            return greedy(scores, allowed)
        candidates = Candidates.of(scores, allowed).narrowed(self._settings)
        return candidates.token(self._draw(candidates.weights(self._settings.temperature)))

    def _draw(self, weights: np.ndarray) -> int:
        """Draw by inverting the cumulative distribution at one random number per token."""
        together = np.cumsum(weights)
        # random() is at most 1 - 2**-53, and no float times that rounds up to the float itself: the
        # point is below the end. To the right of all sums up to it is a weight above zero.
        point = self._random.random() * together[-1]
        return int(np.searchsorted(together, point, side="right"))


def _sound(scores: Any, vocabulary: int) -> np.ndarray:
    """Return what a step gave, or say what is wrong with it."""
    given = np.asarray(scores, np.float64)
    if given.shape != (vocabulary,) or not np.isfinite(without_faults(given)).any():
        raise RequestError(
            f"the sampler must give {vocabulary} scores, at least one of them finite", "sampler"
        )
    return given


def distribution(
    logits: np.ndarray,
    settings: SamplingSettings,
    history: TokenHistory,
    allowed: np.ndarray | None = None,
) -> np.ndarray:
    """Return the probabilities that a Sampler draws from, float64 [V]; greedy has a single 1."""
    scores = Adjustment(settings).scores(logits, history)
    probabilities = np.zeros(len(logits))
    if settings.temperature == 0:
        probabilities[greedy(scores, allowed)] = 1
        return probabilities
    candidates = Candidates.of(scores, allowed).narrowed(settings)
    weights = candidates.weights(settings.temperature)
    probabilities[candidates.tokens()] = weights / weights.sum()
    return probabilities
