"""The score of a token: how likely it was, what else was likely, and what the settings cut off."""

from dataclasses import dataclass, replace

import numpy as np

from py_runtime.sampling.adjust import Adjustment
from py_runtime.sampling.candidates import Candidates, greedy, without_faults
from py_runtime.sampling.history import TokenHistory
from py_runtime.sampling.logprobs import IMPOSSIBLE
from py_runtime.sampling.narrow import largest
from py_runtime.sampling.settings import SamplingSettings

NARROWING = ("top_k", "top_p", "min_p")  # in the order in which a sampler narrows


@dataclass(frozen=True)
class Choice:
    """A token that could come next."""

    token: int
    logprob: float  # of the model's own distribution, before any setting changes it
    drawn: float  # the probability that the settings draw it with
    cut: str | None  # the setting that keeps it from being drawn


@dataclass(frozen=True)
class TokenScore:
    """The score of a token at its position."""

    token: int
    logprob: float
    rank: int  # 1 is the likeliest
    entropy: float  # of the whole distribution, in nats
    best: tuple[Choice, ...]  # the likeliest first
    own: Choice  # the token itself


class Scorer:
    """A scorer of one text: its settings, and the tokens so far."""

    def __init__(self, settings: SamplingSettings, prompt: list[int], vocabulary: int) -> None:
        settings.check(vocabulary)
        self._settings = settings
        self._adjustment = Adjustment(settings)
        self._history = TokenHistory(prompt, vocabulary)

    def score(self, logits: np.ndarray, token: int, top: int) -> TokenScore:
        """Score the token that follows, by logits f32 [V], and go on behind it."""
        scores = without_faults(logits)
        peak = float(scores.max())
        shifted = np.subtract(scores, peak, dtype=np.float64)
        weights = np.exp(shifted)
        total = float(weights.sum())
        # Impossible tokens add nothing: 0 * -inf would be NaN.
        mean = float(np.dot(weights, np.maximum(shifted, IMPOSSIBLE))) / total
        normaliser = peak + float(np.log(total))

        near = largest(scores, top)
        best = near[np.argsort(-scores[near], kind="stable")[:top]].tolist()
        wanted = [*best, token]
        drawn, cut = self._drawn(logits, wanted)
        choices = [
            Choice(found, max(float(scores[found]) - normaliser, IMPOSSIBLE), share, setting)
            for found, share, setting in zip(wanted, drawn, cut, strict=True)
        ]
        rank = 1 + int(np.count_nonzero(scores > scores[token]))
        self._history.add(token)
        return TokenScore(
            token,
            choices[-1].logprob,
            rank,
            float(np.log(total)) - mean,
            tuple(choices[:-1]),
            choices[-1],
        )

    def _drawn(self, logits: np.ndarray, wanted: list[int]) -> tuple[list[float], list[str | None]]:
        """Return each token's probability under the settings, and which of them cuts it off."""
        settings = self._settings
        scores = self._adjustment.scores(logits, self._history)
        if settings.temperature == 0:
            chosen = greedy(scores, None)
            is_chosen = [token == chosen for token in wanted]
            return list(map(float, is_chosen)), [None if c else "temperature" for c in is_chosen]
        left = Candidates.of(scores, None)
        cut: list[str | None] = [None] * len(wanted)
        for name in NARROWING:
            only = SamplingSettings(temperature=settings.temperature)
            left = left.narrowed(replace(only, **{name: getattr(settings, name)}))
            there = np.isin(wanted, left.tokens()) if left.ids is not None else [True] * len(wanted)
            cut = [
                was or (None if is_left else name) for was, is_left in zip(cut, there, strict=True)
            ]
        weights = left.weights(settings.temperature)
        total = float(weights.sum())
        places = (
            np.searchsorted(left.tokens(), wanted) if left.ids is not None else np.array(wanted)
        )
        return [
            0.0 if setting else float(weights[place]) / total
            for place, setting in zip(places.tolist(), cut, strict=True)
        ], cut
