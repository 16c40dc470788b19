"""The tokens that may come next, with their scores."""

from dataclasses import dataclass

import numpy as np

from py_runtime.sampling.errors import NoFiniteLogitsError
from py_runtime.sampling.narrow import min_p, top_k, top_p
from py_runtime.sampling.settings import SamplingSettings


@dataclass(frozen=True)
class Candidates:
    """The tokens left after each step of narrowing, with their scores."""

    ids: np.ndarray | None  # [N] ascending token ids; None: the whole vocabulary
    scores: np.ndarray  # [N], at least one of them finite, none NaN or +inf

    @classmethod
    def of(cls, scores: np.ndarray, allowed: np.ndarray | None) -> "Candidates":
        if allowed is None:
            return cls(None, without_faults(scores))
        ids = allowed_ids(allowed)
        return cls(ids, without_faults(scores[ids]))

    def take(self, places: np.ndarray) -> "Candidates":
        return Candidates(places if self.ids is None else self.ids[places], self.scores[places])

    def narrowed(self, settings: SamplingSettings) -> "Candidates":
        left = self
        if settings.top_k > 0:
            left = left.take(top_k(left.scores, settings.top_k))
        if settings.top_p < 1:
            left = left.take(top_p(left.weights(settings.temperature), settings.top_p))
        if settings.min_p > 0:
            left = left.take(min_p(left.scores, settings.min_p, settings.temperature))
        return left

    def weights(self, temperature: float) -> np.ndarray:
        """Return unnormalised probabilities: float64 [N], the largest is 1."""
        weights: np.ndarray = np.subtract(self.scores, self.scores.max(), dtype=np.float64)
        with np.errstate(over="ignore"):  # a tiny temperature makes all but the best impossible
            weights /= temperature
        np.exp(weights, out=weights)
        return weights

    def token(self, place: int) -> int:
        return place if self.ids is None else int(self.ids[place])

    def tokens(self) -> np.ndarray:
        return np.arange(len(self.scores)) if self.ids is None else self.ids


def greedy(scores: np.ndarray, allowed: np.ndarray | None) -> int:
    """Return the best token, the lowest id among equal ones."""
    if allowed is None:
        return _best(scores)
    ids = allowed_ids(allowed)
    return int(ids[_best(scores[ids])])


def allowed_ids(allowed: np.ndarray) -> np.ndarray:
    """Return the allowed ids in ascending order; ValueError if the mask allows none."""
    ids = np.flatnonzero(allowed)
    if len(ids) == 0:
        raise ValueError("the mask allows no token at all")
    return ids


def without_faults(scores: np.ndarray) -> np.ndarray:
    """Replace NaN and +inf, which only a fault of a model produces, by -inf."""
    if np.isfinite(scores.max()):  # NaN would be the maximum
        return scores
    finite = np.isfinite(scores)
    if not finite.any():
        raise NoFiniteLogitsError(len(scores))
    return np.where(finite, scores, -np.inf)


def _best(scores: np.ndarray) -> int:
    best = int(scores.argmax())
    if np.isfinite(scores[best]):  # NaN would be the maximum
        return best
    return int(without_faults(scores).argmax())
