"""Sampling and stop strings once more, as plainly as they can be written: the tests' oracle."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from py_runtime.sampling import SamplingSettings, TokenHistory

TYING = 3  # every so many random cases have logits that tie


def history_of(prompt: Sequence[int], answer: Sequence[int], vocabulary: int) -> TokenHistory:
    history = TokenHistory(prompt, vocabulary)
    for token in answer:
        history.add(token)
    return history


def random_case(seed: int, vocabulary: int) -> dict[str, Any]:
    """Make any combination of settings, any logits, any history."""
    rng = np.random.default_rng(seed)

    def sometimes(value: Any, otherwise: Any) -> Any:
        return value if rng.random() < 0.5 else otherwise

    logits = rng.normal(0, rng.choice([0.5, 2, 6]), vocabulary)
    if seed % TYING == 0:
        logits = np.round(logits * 2) / 2
    bias_ids = rng.choice(vocabulary, 3, replace=False).tolist()
    allowed = rng.random(vocabulary) < rng.choice([0.1, 0.5, 0.95])
    allowed[rng.integers(vocabulary)] = True
    settings = SamplingSettings(
        temperature=float(rng.choice([0.3, 0.7, 1, 1.6, 2])),
        top_k=sometimes(int(rng.integers(1, vocabulary + 5)), 0),
        top_p=sometimes(float(rng.uniform(0.01, 0.999)), 1.0),
        min_p=sometimes(float(rng.uniform(0.001, 0.5)), 0.0),
        repetition_penalty=sometimes(float(rng.uniform(0.5, 2)), 1.0),
        frequency_penalty=sometimes(float(rng.uniform(-2, 2)), 0.0),
        presence_penalty=sometimes(float(rng.uniform(-2, 2)), 0.0),
        logit_bias=sometimes(dict(zip(bias_ids, [-100.0, -1.25, 2.5], strict=True)), {}),
    )
    return {
        "logits": logits.astype(np.float32),
        "settings": settings,
        "prompt": rng.integers(0, vocabulary, 12).tolist(),
        "answer": rng.integers(0, vocabulary, 20).tolist(),
        "allowed": sometimes(allowed, None),
    }


def plain_distribution(
    logits: np.ndarray,
    settings: SamplingSettings,
    prompt: Sequence[int],
    answer: Sequence[int],
    allowed: np.ndarray | None,
) -> list[float]:
    scores = [float(logit) for logit in logits]
    for token, bias in settings.logit_bias.items():
        scores[token] += bias
    for token in {*prompt, *answer}:
        if scores[token] < 0:
            scores[token] *= settings.repetition_penalty
        else:
            scores[token] /= settings.repetition_penalty
    for token, count in Counter(answer).items():
        scores[token] -= settings.frequency_penalty * count + settings.presence_penalty
    if allowed is not None:
        scores = [s if may else -math.inf for s, may in zip(scores, allowed, strict=True)]
    scores = [score / settings.temperature for score in scores]
    if settings.top_k:
        least = sorted(scores, reverse=True)[: settings.top_k][-1]
        scores = [score if score >= least else -math.inf for score in scores]
    if settings.top_p < 1:
        probabilities = plain_softmax(scores)
        before = 0.0
        for token in sorted(range(len(scores)), key=lambda t: (-scores[t], t)):
            if before >= settings.top_p:
                scores[token] = -math.inf
            before += probabilities[token]
    if settings.min_p:
        probabilities = plain_softmax(scores)
        least = settings.min_p * max(probabilities)
        scores = [
            s if p >= least else -math.inf for s, p in zip(scores, probabilities, strict=True)
        ]
    return plain_softmax(scores)


def plain_softmax(scores: list[float]) -> list[float]:
    peak = max(scores)
    weights = [math.exp(score - peak) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def text_before_stop(text: str, stops: Sequence[str]) -> str | None:
    """Return the text up to the stop that is complete first; None without one."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(map(len, found))]
    return None


def held_back(text: str, stops: Sequence[str]) -> str:
    """Return the longest end of the text that is a proper prefix of a stop."""
    prefixes = {stop[:length] for stop in stops for length in range(len(stop))}
    return max((prefix for prefix in prefixes if text.endswith(prefix)), key=len, default="")
