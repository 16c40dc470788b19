"""Mirostat 2.0."""

import numpy as np

from py_runtime.sampling.step import Drawing, Parameter, Step, log_softmax, register_sampler

# Basu et al., "Mirostat" (ICLR 2021), algorithm 2: with mu = 2 tau at first, drop the tokens whose
# surprise -log2 p exceeds mu; draw from the others, made to add up to 1; then
# mu -= eta (surprise of the token drawn - tau).


@register_sampler(
    "mirostat",
    "Mirostat 2",
    "holds the surprise of words at a level",
    tau=Parameter(5.0, 0.1, 20.0, "surprise aimed at, in bits"),
    eta=Parameter(0.1, 0.001, 1.0, "how fast it is corrected"),
)
class Mirostat(Step):
    """The step; it learns which token was drawn when it is asked for the next one."""

    def __init__(self, drawing: Drawing, tau: float, eta: float) -> None:
        self._tau, self._eta = tau, eta
        self.mu = 2 * tau
        self._drawn_from: np.ndarray | None = None  # log probabilities of the last token

    def __call__(self, scores: np.ndarray, tokens: list[int]) -> np.ndarray:
        if self._drawn_from is not None:
            surprise = -float(self._drawn_from[tokens[-1]]) / np.log(2)
            self.mu -= self._eta * (surprise - self._tau)
        logs = log_softmax(scores)
        dropped = -logs / np.log(2) > self.mu
        dropped[int(logs.argmax())] = False
        kept = np.where(dropped, -np.inf, scores)
        self._drawn_from = log_softmax(kept)
        return kept
