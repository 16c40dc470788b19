"""Draws follow the distribution, and a seed repeats them on every machine."""

from typing import Any

import numpy as np
import pytest

from py_runtime.sampling import Sampler, SamplingSettings, distribution
from tests.runners import Runner
from tests.sampling.reference import history_of

VOCABULARY = 8
LOGITS = np.array([0.5, 2.0, -1.0, 1.0, 1.5, 0.0, -0.5, 1.25], np.float32)
DRAWS = 5_000
# The chi-square that one fair experiment in a thousand exceeds, by degrees of freedom.
CRITICAL = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46, 7: 24.32}

# What every machine draws with seed 42: logits [1000] that floats hold exactly.
PINNED_SETTINGS = {"temperature": 0.8, "top_k": 200, "top_p": 0.95, "repetition_penalty": 1.25}
PINNED = "767 433 849 690 88 970 745 789 126 444 356 926 619 816 422 225 548 50 827 603"


def draw(settings: SamplingSettings, count: int, allowed: Any = None) -> list[int]:
    sampler, history = Sampler(settings, VOCABULARY), history_of([1], [2], VOCABULARY)
    return [sampler.sample(LOGITS, history, allowed) for _ in range(count)]


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 2.0, "presence_penalty": -1.0},
        {"top_k": 4},
        {"top_p": 0.7},
        {"min_p": 0.3},
        {"repetition_penalty": 1.5, "logit_bias": {6: 2.0}, "top_p": 0.9, "top_k": 6},
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_draws_follow_the_distribution(settings: dict[str, Any], masked: bool) -> None:
    allowed = np.arange(VOCABULARY) % 3 != 1 if masked else None
    seeded = SamplingSettings(seed=1, **settings)
    history = history_of([1], [2], VOCABULARY)
    expected = DRAWS * distribution(LOGITS, seeded, history, allowed)
    observed = np.bincount(draw(seeded, DRAWS, allowed), minlength=VOCABULARY)
    possible = expected > 0
    assert observed[~possible].sum() == 0
    deviation = (observed - expected)[possible] ** 2 / expected[possible]
    assert deviation.sum() < CRITICAL[possible.sum() - 1]


@pytest.mark.parametrize("seed", [0, 7, -1, 2**63 - 1, -(2**63)])
def test_same_seed_same_draws(seed: int) -> None:
    settings = SamplingSettings(seed=seed)
    assert draw(settings, 100) == draw(settings, 100)


def test_other_seeds_and_none_draw_differently() -> None:
    settings = [SamplingSettings(seed=seed) for seed in (0, 1, -1, 2**40, -(2**40), None, None)]
    assert len({tuple(draw(entry, 100)) for entry in settings}) == len(settings)


class Always:
    def __init__(self, value: float) -> None:
        self.random = lambda: value


@pytest.mark.parametrize(("value", "token"), [(0.0, 10), (1 - 2**-53, 39)])
@pytest.mark.parametrize("seed", range(30))
def test_the_ends_of_the_random_numbers(
    monkeypatch: pytest.MonkeyPatch, seed: int, value: float, token: int
) -> None:
    """They fall to the first and the last possible token, whatever the weights' sum rounds to."""
    sampler = Sampler(SamplingSettings(), 50)
    monkeypatch.setattr(sampler, "_random", Always(value))
    logits = np.random.default_rng(seed).normal(0, 1, 50).astype(np.float32)
    logits[:10] = logits[40:] = -np.inf
    assert sampler.sample(logits, history_of([], [], 50)) == token


def test_same_tokens_on_every_machine(runner: Runner) -> None:
    expected = [int(token) for token in PINNED.split()]
    case = {"settings": {**PINNED_SETTINGS, "seed": 42}, "count": len(expected)}
    assert runner.run("tests.sampling.in_runtime", "draw_pinned", **case) == expected
