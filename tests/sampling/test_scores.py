"""Scores of tokens: the sampler's own distribution, and which setting cut off what."""

from typing import Any

import numpy as np
import pytest

from py_runtime.sampling import SamplingSettings, TokenHistory, distribution, logprobs
from py_runtime.sampling.scores import Scorer, TokenScore

VOCABULARY = 300
LOGITS = np.random.default_rng(1).normal(size=(3, VOCABULARY)).astype(np.float32) * 3
PROMPT = [5, 6, 7]
ALL: dict[str, Any] = {"top_k": 40, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.4}


def scores(tokens: list[int], top: int = 12, **settings: Any) -> list[TokenScore]:
    scorer = Scorer(SamplingSettings(**settings), PROMPT, VOCABULARY)
    return [scorer.score(row, token, top) for row, token in zip(LOGITS, tokens, strict=True)]


@pytest.mark.parametrize("settings", [{}, {"temperature": 0}, {"temperature": 0.7, **ALL}])
def test_a_score_says_what_a_sampler_draws(settings: dict[str, Any]) -> None:
    tokens = [int(LOGITS[0].argmax()), 9, 11]
    history = TokenHistory(PROMPT, VOCABULARY)
    for row, token, score in zip(LOGITS, tokens, scores(tokens, **settings), strict=True):
        wanted = distribution(row, SamplingSettings(**settings), history)
        plain = logprobs(row, token, 12)
        assert score.logprob == pytest.approx(plain.logprob)
        assert [each.token for each in score.best] == [found for found, _ in plain.top]
        for choice in (*score.best, score.own):
            assert choice.drawn == pytest.approx(wanted[choice.token])
            assert (choice.cut is None) == (wanted[choice.token] > 0)
        assert score.rank == 1 + int((row > row[token]).sum())
        history.add(token)


@pytest.mark.parametrize(
    ("settings", "cut"),
    [
        ({"temperature": 0}, "temperature"),
        ({"top_k": 2}, "top_k"),
        ({"top_p": 0.01}, "top_p"),
        ({"min_p": 0.99}, "min_p"),
        ({"top_k": 2, "min_p": 0.99, "top_p": 0.01}, "top_k"),
    ],
)
def test_the_first_setting_that_cuts_a_token_off_is_named(
    settings: dict[str, Any], cut: str
) -> None:
    best = scores([1, 1, 1], **settings)[0].best
    assert best[0].cut is None
    assert best[-1].cut == cut


def test_entropy_is_that_of_the_whole_distribution() -> None:
    weights = np.exp(LOGITS[0].astype(np.float64))
    shares = weights / weights.sum()
    assert scores([1, 1, 1])[0].entropy == pytest.approx(-(shares * np.log(shares)).sum())
