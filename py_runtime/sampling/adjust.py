"""Logit bias and penalties, which change a logit by its token alone."""

import numpy as np

from py_runtime.sampling.history import TokenHistory
from py_runtime.sampling.settings import SamplingSettings


class Adjustment:
    """The bias and penalties of one answer; its arrays are made once."""

    def __init__(self, settings: SamplingSettings) -> None:
        bias = settings.logit_bias
        self._bias_ids = np.fromiter(bias.keys(), np.int64, len(bias))
        self._biases = np.fromiter(bias.values(), np.float64, len(bias))
        self._repetition = settings.repetition_penalty
        self._frequency = settings.frequency_penalty
        self._presence = settings.presence_penalty
        self._over_answer = self._frequency != 0 or self._presence != 0
        self._any = len(bias) > 0 or self._repetition != 1 or self._over_answer

    def scores(self, logits: np.ndarray, history: TokenHistory) -> np.ndarray:
        """Return the logits themselves if nothing changes, else new scores: float64 [V]."""
        if not self._any:
            return logits
        scores = logits.astype(np.float64)
        scores[self._bias_ids] += self._biases
        if self._repetition != 1:
            ids = history.everything.ids
            seen = scores[ids]
            scores[ids] = np.where(seen < 0, seen * self._repetition, seen / self._repetition)
        if self._over_answer:
            answer = history.answer
            scores[answer.ids] -= self._frequency * answer.counts + self._presence
        return scores
