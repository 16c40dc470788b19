"""DRY: do not repeat yourself."""

import numpy as np

from py_runtime.sampling.step import Drawing, Parameter, Step, register_sampler

# p-e-w, "DRY: A modern repetition penalty" (text-generation-webui, pull request 5677, 2024): a
# token that would continue a sequence of n tokens that stood before loses multiplier * base^(n -
# allowed), for the longest such n of at least `allowed`. Sequences do not reach across line breaks,
# colons, quotation marks and asterisks.
BREAKERS = ("\n", ":", '"', "*")
LONGEST = 50  # of a sequence: the penalty is out of all bounds by then


@register_sampler(
    "dry",
    "DRY",
    "avoids repeating whole phrases",
    multiplier=Parameter(0.8, 0.0, 10.0, "strength"),
    base=Parameter(1.75, 1.0, 4.0, "growth with each repeated word"),
    allowed_length=Parameter(2, 1, 20, "words that may repeat", is_whole=True),
    range=Parameter(0, 0, 1_000_000, "tokens looked back on; 0: all", is_whole=True),
)
class Dry(Step):
    """The step."""

    def __init__(
        self, drawing: Drawing, multiplier: float, base: float, allowed_length: int, range: int
    ) -> None:
        self._multiplier, self._base = multiplier, base
        self._allowed, self._range = allowed_length, range
        self._texts = drawing.texts
        self._breaks: dict[int, bool] = {}  # whether a token ends sequences

    def __call__(self, scores: np.ndarray, tokens: list[int]) -> np.ndarray:
        seen = np.array(tokens[-self._range :] if self._range else tokens, np.int64)
        most = self._unbroken(tokens[-self._range :] if self._range else tokens)
        if most < self._allowed:
            return scores
        # lengths[i]: how many tokens before place i equal those at the end.
        lengths = np.zeros(len(seen), np.int64)
        running = np.ones(len(seen), bool)
        for back in range(1, most + 1):
            running[:back] = False
            running[back:] &= seen[: len(seen) - back] == seen[-back]
            if not running.any():
                break
            lengths += running
        changed = scores.copy()
        places = np.flatnonzero(lengths >= self._allowed)
        longest: dict[int, int] = {}
        for place in places.tolist():
            token = int(seen[place])
            longest[token] = max(longest.get(token, 0), int(lengths[place]))
        for token, length in longest.items():
            if not self._is_break(token):
                changed[token] -= self._multiplier * self._base ** (length - self._allowed)
        return changed

    def _unbroken(self, tokens: list[int]) -> int:
        """Return how many of the last tokens no breaker interrupts, up to LONGEST."""
        count = 0
        while count < min(LONGEST, len(tokens)) and not self._is_break(tokens[-1 - count]):
            count += 1
        return count

    def _is_break(self, token: int) -> bool:
        if token not in self._breaks:
            text = self._texts(token)
            self._breaks[token] = any(breaker in text for breaker in BREAKERS)
        return self._breaks[token]
