"""Tokens drawn on the GPU: their distribution is the reference's, and greedy text is the host's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.generation import decode_loop
from py_runtime.generation.device_sampler import MAX_CHANGES
from py_runtime.sampling import Sampler, SamplingSettings, TokenHistory, distribution
from tests.runners import NativeRunner, Runner

CASES = "tests.generation.decode_loop_cases"
VOCABULARY = 50
PROMPT = [1, 2, 3, 3]
LOGITS = (np.random.default_rng(0).standard_normal(VOCABULARY) * 3).astype(np.float32)
DRAWS = 2560

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "cold": {"temperature": 0.5},
    "top_k": {"temperature": 0.8, "top_k": 5},
    "top_k 1": {"top_k": 1},
    "top_p": {"temperature": 1.2, "top_p": 0.8},
    "narrow top_p": {"temperature": 2.0, "top_p": 0.3},
    "min_p": {"temperature": 1.5, "min_p": 0.1},
    "all three": {"temperature": 1.5, "top_k": 20, "top_p": 0.9, "min_p": 0.02},
    "bias": {"logit_bias": {"7": 4.0, "11": -100.0}},
}


def reference(settings: dict[str, Any], logits: np.ndarray = LOGITS) -> np.ndarray:
    return distribution(logits, chosen(settings), TokenHistory(PROMPT, len(logits)))


def chosen(settings: dict[str, Any]) -> SamplingSettings:
    bias = {int(token): value for token, value in settings.get("logit_bias", {}).items()}
    return SamplingSettings(**{**settings, "logit_bias": bias})


def chi_square(tokens: np.ndarray, probabilities: np.ndarray) -> tuple[float, int]:
    """Return chi-square of the tokens' counts, rare ones together, and its degrees of freedom."""
    expected = probabilities * len(tokens)
    counts = np.bincount(tokens, minlength=len(probabilities))
    common = expected >= 5
    groups = [*zip(counts[common], expected[common], strict=True)]
    if expected[~common].sum() > 0:
        groups.append((counts[~common].sum(), expected[~common].sum()))
    return sum((seen - wanted) ** 2 / wanted for seen, wanted in groups), len(groups) - 1


@pytest.mark.thorough_in_page
@pytest.mark.parametrize("name", SETTINGS)
def test_the_distribution_is_the_references(name: str, runner: Runner) -> None:
    settings = SETTINGS[name]
    tokens = runner.run(
        CASES, "draw", logits=LOGITS, settings=settings, prompt=PROMPT, seed=5, draws=DRAWS
    )
    probabilities = reference(settings)
    assert probabilities[tokens].min() > 0, "a token that the settings forbid"
    statistic, freedom = chi_square(tokens, probabilities)
    # Five standard deviations of the statistic: seeds are fixed, so this never fails by chance.
    assert statistic <= freedom + 5 * np.sqrt(2 * max(freedom, 1))


@pytest.mark.parametrize("name", ["plain", "all three"])
def test_the_wide_kernel_draws_alike(name: str, native: NativeRunner) -> None:
    arguments = {"logits": LOGITS, "settings": SETTINGS[name], "prompt": PROMPT, "seed": 9}
    tokens = native.run(CASES, "draw", **arguments, draws=1024, wide=True)
    statistic, freedom = chi_square(tokens, reference(SETTINGS[name]))
    assert statistic <= freedom + 5 * np.sqrt(2 * max(freedom, 1))


def test_same_seed_same_tokens(runner: Runner) -> None:
    def drawn(seed: int) -> list[int]:
        tokens: np.ndarray = runner.run(
            CASES, "draw", logits=LOGITS, settings={}, prompt=PROMPT, seed=seed, draws=40
        )
        return tokens.tolist()

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


PENALTIES = {
    "repetition": {"repetition_penalty": 1.5},
    "frequency": {"frequency_penalty": 0.7},
    "presence": {"presence_penalty": 1.9},
    "all": {"repetition_penalty": 1.2, "frequency_penalty": 0.4, "presence_penalty": 0.3},
}


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_count_as_the_host_does(name: str, native: Runner) -> None:
    """Greedy over the same logits: only the history changes the choice."""
    settings = {"temperature": 0.0, **PENALTIES[name]}
    got = native.run(
        CASES, "draw", logits=LOGITS, settings=settings, prompt=PROMPT, seed=0, draws=60
    )
    sampler, history = Sampler(chosen(settings), VOCABULARY), TokenHistory(PROMPT, VOCABULARY)
    wanted = []
    for _ in range(60):
        wanted.append(sampler.sample(LOGITS, history))
        history.add(wanted[-1])
    assert got.tolist() == wanted


def test_ties_and_what_is_no_number(native: Runner) -> None:
    logits = np.full(VOCABULARY, -1.0, np.float32)
    logits[[9, 20]] = 2.0
    logits[3], logits[4] = np.nan, -np.inf
    greedy = {"logits": logits, "settings": {"temperature": 0.0}, "prompt": [], "seed": 0}
    assert native.run(CASES, "draw", **greedy, draws=1).tolist() == [9]
    two = {"logits": logits, "settings": {"top_k": 2}, "prompt": [], "seed": 0}
    assert set(native.run(CASES, "draw", **two, draws=100).tolist()) == {9, 20}
    nothing = {**greedy, "logits": np.full(VOCABULARY, np.nan, np.float32)}
    assert native.run(CASES, "draw", **nothing, draws=1).tolist() == [0xFFFFFFFF]


def test_a_large_vocabulary(native: NativeRunner) -> None:
    logits = np.random.default_rng(1).standard_normal(49_152).astype(np.float32) * 4
    settings = {"temperature": 1.1, "top_k": 40, "top_p": 0.95}
    tokens = native.run(
        CASES, "draw", logits=logits, settings=settings, prompt=[], seed=2, draws=160
    )
    probabilities = distribution(logits, chosen(settings), TokenHistory([], len(logits)))
    statistic, freedom = chi_square(tokens, probabilities)
    assert probabilities[tokens].min() > 0
    assert statistic <= freedom + 5 * np.sqrt(2 * freedom)


def test_a_loop_gives_the_tokens_of_single_steps(native: NativeRunner, toy_model: Path) -> None:
    prompt = [3, 70, 71, 9, 12]
    result = native.run(
        CASES, "loop_and_steps", where=str(toy_model), prompt=prompt, sizes=[1, 2, 5, 16, 7]
    )
    assert len(result["looped"]) == 32
    assert result["looped"] == result["stepped"]
    assert result["submits"] == 6
    assert result["difference"] < 1e-3


def test_words_that_move_beyond_the_kernels_table(
    native: NativeRunner, toy_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps go together for as many words as the table holds; with one more, one by one."""

    def looped() -> Any:
        return native.run(
            CASES, "loop_and_steps", where=str(toy_model), prompt=[3, 70, 71], sizes=[4]
        )

    found = looped()
    assert 1 <= found["moving"] <= MAX_CHANGES
    for table, steps in ((found["moving"], 4), (found["moving"] - 1, 1)):
        monkeypatch.setattr(decode_loop, "MAX_CHANGES", table)
        result = looped()
        assert len(result["looped"]) == 1 + steps
        assert result["looped"] == result["stepped"] == found["looped"][: 1 + steps]
