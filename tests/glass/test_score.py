"""Scores of tokens: torch's probabilities, and what sampling settings cut off."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.reference import last_logits, reference_decoder
from export.sources import HuggingFaceSource, Quantisation
from py_runtime.sampling import SamplingSettings, TokenHistory, distribution
from tests.runners import CpuRunner, PlacedToy, Runner
from tests.toy_model import CONTEXT, NAME

pytestmark = pytest.mark.torch

CASES = "tests.glass.score_cases"
TOKENS = np.random.default_rng(0).integers(3, 300, 140).tolist()
SETTINGS: dict[str, Any] = {
    "temperature": 0.7,
    "top_k": 40,
    "top_p": 0.4,
    "repetition_penalty": 1.3,
}
PROMPT = 20


@pytest.fixture(scope="module")
def logits(toy_model: Path) -> np.ndarray:
    """Return torch's logits after each token."""
    source = HuggingFaceSource.open(toy_model.parent / ".checkpoint" / NAME, Quantisation("q4gsw"))
    decoder = reference_decoder(source, source.decoder_config(CONTEXT))
    return np.stack([last_logits(decoder, TOKENS[: end + 1]) for end in range(len(TOKENS))])


def check(runner: Runner, where: str, logits: np.ndarray) -> None:
    given: dict[str, Any] = {"tokens": TOKENS, "settings": SETTINGS, "prompt": PROMPT}
    found = runner.run(CASES, "scores", where=where, **given)
    assert found["is_left"], "the session holds what it held"
    assert found["is_same"], "and answers are what they were"
    assert found["computed"] == 5, "the answer's tokens, and the one before them"
    for late, whole in zip(found["late"], found["of_answer"], strict=True):
        assert late["token"] == whole["token"]
        assert late["entropy"] == pytest.approx(whole["entropy"], abs=1e-3)
    first, *scored, following = found["scores"]
    assert (first["token"], first["logprob"]) == (TOKENS[0], None)
    assert following["token"] is None
    wanted = torch.tensor(logits).double().log_softmax(-1).numpy()
    entropies = -(np.exp(wanted) * wanted).sum(-1)
    np.testing.assert_allclose(
        [each["logprob"] for each in scored], wanted[np.arange(139), TOKENS[1:]], atol=2e-3
    )
    np.testing.assert_allclose(
        [each["entropy"] for each in (*scored, following)], entropies, atol=2e-3
    )
    history = TokenHistory(TOKENS[:1], logits.shape[1])
    for at, each in enumerate((*scored, following)):
        best = wanted[at, [other["token"] for other in each["best"]]]
        np.testing.assert_allclose([other["logprob"] for other in each["best"]], best, atol=2e-3)
        assert (np.diff(best) < 2e-3).all()
        drawn = distribution(logits[at], SamplingSettings(**SETTINGS), history)
        for other in each["best"]:
            if abs(drawn[other["token"]]) > 1e-3:
                assert not other["is_cut"]
        if drawn[each["best"][-1]["token"]] == 0:
            assert each["best"][-1]["is_cut"]
        if at + 1 < len(TOKENS):
            own = wanted[at, TOKENS[at + 1]]
            assert abs(each["rank"] - int((wanted[at] > own).sum())) <= 1
            if at + 1 < PROMPT:
                history.everything.add(TOKENS[at + 1])
            else:
                history.add(TOKENS[at + 1])


def test_scores_are_torchs(toy: PlacedToy, logits: np.ndarray) -> None:
    check(toy.runner, toy.where, logits)


def test_on_the_cpu(cpu: CpuRunner, toy_model: Path, logits: np.ndarray) -> None:
    check(cpu, str(toy_model), logits)
