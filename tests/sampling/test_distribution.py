"""The distribution that tokens are drawn from, against plain float64 and against transformers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import generation

from py_runtime.sampling import NoFiniteLogitsError, Sampler, SamplingSettings, distribution
from tests.sampling.reference import TYING, history_of, plain_distribution, random_case

pytestmark = pytest.mark.torch

SMALL, LARGE = 60, 5000
GREEDY = SamplingSettings(temperature=0)


def ours(
    logits: Any, prompt: Any = (), answer: Any = (), allowed: Any = None, **settings: Any
) -> np.ndarray:
    logits = np.array(logits, np.float32)
    history = history_of(prompt, answer, len(logits))
    return distribution(logits, SamplingSettings(**settings), history, allowed)


def ours_of_case(case: dict[str, Any]) -> np.ndarray:
    case["logits"].setflags(write=False)
    history = history_of(case["prompt"], case["answer"], len(case["logits"]))
    return distribution(case["logits"], case["settings"], history, case["allowed"])


def transformers_distribution(
    logits: np.ndarray,
    settings: SamplingSettings,
    prompt: list[int],
    answer: list[int],
    allowed: np.ndarray | None,
) -> np.ndarray:
    """Run its processors in our order, in float64, without frequency, presence and mask."""
    tokens = torch.tensor([[*prompt, *answer]])
    scores = torch.tensor(logits, dtype=torch.float64)[None]
    if settings.logit_bias:
        bias = [[[token], value] for token, value in settings.logit_bias.items()]
        scores = generation.SequenceBiasLogitsProcessor(bias)(tokens, scores)
    if settings.repetition_penalty != 1:
        penalise = generation.RepetitionPenaltyLogitsProcessor(settings.repetition_penalty)
        scores = penalise(tokens, scores)
    counts = torch.bincount(torch.tensor(answer), minlength=len(logits)).double()
    scores = (
        scores - settings.frequency_penalty * counts - settings.presence_penalty * counts.sign()
    )
    if allowed is not None:
        scores = scores.masked_fill(~torch.tensor(allowed)[None], -torch.inf)
    scores = generation.TemperatureLogitsWarper(settings.temperature)(tokens, scores)
    if settings.top_k:
        scores = generation.TopKLogitsWarper(settings.top_k)(tokens, scores)
    if settings.top_p < 1:
        scores = generation.TopPLogitsWarper(settings.top_p)(tokens, scores)
    if settings.min_p:
        scores = generation.MinPLogitsWarper(settings.min_p)(tokens, scores)
    return scores.softmax(dim=-1)[0].numpy()


@pytest.mark.parametrize("vocabulary", [SMALL, LARGE])
@pytest.mark.parametrize("seed", range(60))
def test_against_the_references(seed: int, vocabulary: int) -> None:
    case = random_case(seed, vocabulary)
    found = ours_of_case(case)
    np.testing.assert_allclose(found, plain_distribution(**case), rtol=1e-9, atol=1e-15)
    theirs = transformers_distribution(**case)
    if seed % TYING == 0:  # which of equal tokens it keeps depends on torch's sort
        found, theirs = np.sort(found), np.sort(theirs)
    np.testing.assert_allclose(found, theirs, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("seed", range(30))
def test_greedy_is_the_best_of_the_distribution(seed: int) -> None:
    """Bias, penalties and mask come first.

    Of equal ones the lowest id wins, which no filter drops.
    """
    case = random_case(seed, SMALL)
    best = int(np.argmax(plain_distribution(**case)))
    case["settings"] = replace(case["settings"], temperature=0)
    found = ours_of_case(case)
    assert found[best] == found.sum() == 1
    history = history_of(case["prompt"], case["answer"], SMALL)
    sampler = Sampler(case["settings"], SMALL)
    assert sampler.sample(case["logits"], history, case["allowed"]) == best


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        ({"top_k": 1}, [1, 3]),  # what ties with the k-th stays
        ({"top_k": 2}, [1, 3]),
        ({"top_k": 3}, [1, 3, 4]),
        ({"top_k": 4}, [0, 1, 2, 3, 4]),
        ({"top_k": 9}, [0, 1, 2, 3, 4]),
        ({"top_p": 0.0}, [1]),  # one stays always, the first of equal ones
        ({"top_p": 0.29}, [1]),
        ({"top_p": 0.35}, [1, 3]),  # the token that crosses the share stays
        ({"top_p": 0.75}, [1, 3, 4]),
        ({"top_p": 0.85}, [0, 1, 3, 4]),
        ({"min_p": 1.0}, [1, 3]),
        ({"min_p": 0.6}, [1, 3, 4]),
        ({"min_p": 0.3}, [0, 1, 2, 3, 4]),
        ({"top_k": 3, "top_p": 0.7}, [1, 3]),  # of what top_k left, 0.767; of all, 0.598
        ({"top_p": 0.85, "min_p": 0.6}, [1, 3, 4]),
        ({"temperature": 1e-300}, [1, 3]),
        ({"temperature": 5e-324, "top_p": 0.9, "min_p": 0.1}, [1, 3]),
    ],
)
def test_ties_and_edges(settings: dict[str, Any], tokens: list[int]) -> None:
    found = ours([0.0, 1.0, 0.0, 1.0, 0.5], **settings)  # 0.11, 0.30, 0.11, 0.30, 0.18
    assert np.flatnonzero(found).tolist() == tokens
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("vocabulary", [8, 4096])
def test_a_flat_vocabulary(vocabulary: int) -> None:
    """All tie, and every sum is exact: the share is just reached, or just not."""
    flat = np.zeros(vocabulary)
    quarter = list(range(vocabulary // 4))
    assert np.flatnonzero(ours(flat, top_p=0.25)).tolist() == quarter
    just_above = float(np.nextafter(0.25, 1))
    assert np.flatnonzero(ours(flat, top_p=just_above)).tolist() == [*quarter, len(quarter)]
    assert np.count_nonzero(ours(flat, top_k=1)) == vocabulary


def test_min_p_compares_in_float64() -> None:
    """The nearest f32 to log 2 is a little above it, so that the other has a little below half."""
    assert np.flatnonzero(ours([0.0, np.log(2)], min_p=0.5)).tolist() == [1]


def test_the_repetition_penalty_is_over_prompt_and_answer() -> None:
    found = ours([2.0, -2.0, 2.0, 0.5], [0], [1, 1], repetition_penalty=2.0)
    np.testing.assert_allclose(np.log(found) - np.log(found[3]), [0.5, -4.5, 1.5, 0], rtol=1e-12)


def test_frequency_and_presence_are_over_the_answer() -> None:
    settings = {"frequency_penalty": 0.5, "presence_penalty": 0.25}
    found = ours([2.0, 2.0, 2.0, 2.0], [0, 0], [1, 2, 2, 2], **settings)
    np.testing.assert_allclose(np.log(found) - np.log(found[3]), [0, -0.75, -1.75, 0], atol=1e-12)


def test_a_long_history() -> None:
    """More distinct tokens than the arrays first have room for."""
    answer = [token for token in range(300) for _ in range(token % 3 + 1)]
    found = ours(np.zeros(400), range(200, 320), answer, frequency_penalty=0.5)
    expected = [-0.5 * (token % 3 + 1) if token < 300 else 0 for token in range(400)]
    np.testing.assert_allclose(np.log(found) - np.log(found[399]), expected, atol=1e-12)


def test_bias_comes_before_the_penalties() -> None:
    found = ours([1.0, 0.0], [0], logit_bias={0: -3.0}, repetition_penalty=2.0)
    assert np.log(found[0] / found[1]) == pytest.approx(-4.0)


@pytest.mark.parametrize("settings", [GREEDY, SamplingSettings(top_k=2), SamplingSettings()])
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
def test_faulty_logits_are_never_chosen(settings: SamplingSettings, fault: float) -> None:
    logits = np.array([fault, 1.0, fault, 3.0, fault], np.float32)
    found = distribution(logits, settings, history_of([0], [2], 5))
    assert set(np.flatnonzero(found)) <= {1, 3}
    assert found[3] >= 0.85
    assert found.sum() == pytest.approx(1)
    assert Sampler(settings, 5).sample(logits, history_of([0], [2], 5)) in (1, 3)


@pytest.mark.parametrize(
    "settings",
    [GREEDY, SamplingSettings(), SamplingSettings(top_p=0.9, repetition_penalty=1.1)],
)
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
def test_no_finite_logits(settings: SamplingSettings, fault: float) -> None:
    """The same holds where only the allowed ones are faulty."""
    history = history_of([0], [], 3)
    with pytest.raises(NoFiniteLogitsError) as caught:
        Sampler(settings, 3).sample(np.full(3, fault, np.float32), history)
    assert caught.value.code == "no_finite_logits"
    assert str(caught.value) == (
        "the model computed no finite logits: all 3 that may be chosen are NaN or infinite; "
        "verify the model on this GPU, or load it again"
    )
    logits = np.array([fault, 5.0, fault], np.float32)
    with pytest.raises(NoFiniteLogitsError, match="all 2 that may be chosen"):
        Sampler(settings, 3).sample(logits, history, np.array([True, False, True]))


@pytest.mark.parametrize("settings", [GREEDY, SamplingSettings(top_p=0.5)])
def test_an_empty_mask_is_the_callers_fault(settings: SamplingSettings) -> None:
    with pytest.raises(ValueError, match="the mask allows no token at all"):
        Sampler(settings, 3).sample(
            np.zeros(3, np.float32), history_of([], [], 3), np.zeros(3, bool)
        )
