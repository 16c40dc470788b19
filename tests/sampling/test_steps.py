"""Samplers that requests name, against the definitions of their papers, written out plainly."""

from typing import Any

import numpy as np
import pytest

import py_runtime.sampling.steps  # noqa: F401  (registers them)
from py_runtime.base.errors import RequestError
from py_runtime.sampling.step import (
    KINDS,
    Drawing,
    Step,
    choose_step,
    log_softmax,
    register_sampler,
)
from py_runtime.sampling.steps.dry import BREAKERS

VOCABULARY = 40
TEXTS = {3: "a\nb", 7: ":"}


def make(name: str, seed: int = 0, **values: Any) -> Step:
    random = np.random.Generator(np.random.PCG64(seed))
    drawing = Drawing((), VOCABULARY, random, lambda token: TEXTS.get(token, "x"))
    return choose_step({"name": name, **values}).make(drawing)


def scores_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 3, VOCABULARY)


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


@pytest.mark.torch
@pytest.mark.parametrize("mass", [0.2, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(5))
def test_typical_as_transformers_has_it(mass: float, seed: int) -> None:
    import torch
    from transformers.generation import TypicalLogitsWarper

    scores = scores_of(seed)
    given = torch.tensor(scores)[None]
    wanted = TypicalLogitsWarper(mass)(torch.zeros((1, 1), dtype=torch.long), given)[0].numpy()
    found = make("typical", mass=mass)(scores, [])
    assert np.array_equal(np.isfinite(found), np.isfinite(wanted))
    assert np.array_equal(found[np.isfinite(found)], scores[np.isfinite(wanted)])


def test_mirostat_holds_the_surprise() -> None:
    step, random = make("mirostat", tau=3.0, eta=0.2), np.random.default_rng(1)
    mu, tokens, surprises = 6.0, [0], []
    for at in range(300):
        scores = scores_of(at)
        shares = softmax(scores)
        kept = [t for t in range(VOCABULARY) if -np.log2(shares[t]) <= mu] or [int(shares.argmax())]
        found = step(scores, tokens)
        assert np.flatnonzero(np.isfinite(found)).tolist() == sorted(map(int, kept))
        drawn = softmax(found)
        token = int(random.choice(VOCABULARY, p=drawn))
        surprise = -np.log2(shares[token] / shares[kept].sum())
        mu -= 0.2 * (surprise - 3.0)
        tokens.append(token)
        surprises.append(surprise)
    assert abs(np.mean(surprises[50:]) - 3.0) < 1.0


def dry_by_definition(
    tokens: list[int], multiplier: float, base: float, allowed: int
) -> dict[int, float]:
    """Write out what the reference does, token by token."""
    breaks = {token for token, text in TEXTS.items() if any(b in text for b in BREAKERS)}
    penalties: dict[int, float] = {}
    if tokens[-1] in breaks:
        return {}
    for at in range(len(tokens) - 1):
        following = tokens[at + 1]
        if tokens[at] != tokens[-1] or following in breaks:
            continue
        length = 1
        while (
            length <= at
            and tokens[at - length] == tokens[-1 - length]
            and tokens[-1 - length] not in breaks
        ):
            length += 1
        if length >= allowed:
            penalty = multiplier * base ** (length - allowed)
            penalties[following] = max(penalties.get(following, 0.0), penalty)
    return penalties


@pytest.mark.parametrize("seed", range(20))
def test_dry(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 6 + seed % 4, 45).tolist()
    allowed = 1 + seed % 3
    scores = scores_of(seed)
    found = make("dry", multiplier=0.7, base=1.5, allowed_length=allowed)(scores, tokens)
    wanted = scores.copy()
    for token, penalty in dry_by_definition(tokens, 0.7, 1.5, allowed).items():
        wanted[token] -= penalty
    assert np.allclose(found, wanted)


def test_xtc_leaves_the_least_likely_top_choice() -> None:
    scores = np.full(VOCABULARY, -20.0)
    scores[[4, 9, 11]] = [3.0, 2.5, 1.5]
    shares = softmax(scores)
    assert (shares[[4, 9, 11]] > 0.1).all()
    found = make("xtc", threshold=0.1, probability=1.0)(scores, [])
    assert np.flatnonzero(~np.isfinite(found)).tolist() == [4, 9]
    assert found[11] == 1.5
    assert np.array_equal(make("xtc", threshold=0.1, probability=0.0)(scores, []), scores)
    step = make("xtc", threshold=0.1, probability=0.3)
    share = np.mean([not np.isfinite(step(scores, [])[4]) for _ in range(2000)])
    assert abs(share - 0.3) < 0.05


def test_contrast_of_two_prompts() -> None:
    own, other = scores_of(1), scores_of(2)
    step = make("contrast", strength=2.0, share=0.05)
    step.other = other  # type: ignore[attr-defined]
    found = step(own, [])
    logs, others = np.log(softmax(own)), np.log(softmax(other))
    plausible = softmax(own) >= 0.05 * softmax(own).max()
    assert np.array_equal(np.isfinite(found), plausible)
    assert np.allclose(found[plausible], (others + 2 * (logs - others))[plausible])


def test_strength_one_is_the_prompt_alone() -> None:
    own = scores_of(3)
    step = make("contrast", strength=1.0, share=0.0)
    step.other = scores_of(4)  # type: ignore[attr-defined]
    assert np.allclose(log_softmax(step(own, [])), log_softmax(own))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("dry", "sampler must be a function of .* or an object with the name of one"),
        ({"name": "wet"}, "there is no sampler 'wet'; there are contrast, dry"),
        ({"name": "dry", "strength": 1}, "dry has no parameter 'strength'; it has multiplier, "),
        ({"name": "dry", "base": 0.5}, "base of dry must be a number from 1 to 4, got 0.5"),
        ({"name": "dry", "allowed_length": 1.5}, "allowed_length of dry must be a whole number"),
        ({"name": "contrast", "negative": 1}, "negative of contrast must be a text, got 1"),
    ],
)
def test_what_is_wrong_is_said(given: Any, text: str) -> None:
    with pytest.raises(RequestError, match=text):
        choose_step(given)


def test_a_sampler_of_one_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("py_runtime.sampling.step.KINDS", dict(KINDS))

    @register_sampler("no_x", strength=(5.0, 0.0, 20.0))
    def no_x(drawing: Drawing, strength: float) -> Step:
        """Avoid the letter x."""
        has_x = np.array(["x" in drawing.texts(token) for token in range(drawing.vocabulary)])
        return lambda scores, tokens: scores - strength * has_x

    scores = scores_of(5)
    found = make("no_x", strength=2)(scores, [])
    assert found[3] == scores[3]
    assert found[4] == scores[4] - 2
