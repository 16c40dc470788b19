"""Rotary tables where keys are left out, and at the ends of ranges; the rest is torch's to say."""

import math
from typing import Any

import numpy as np
import pytest

from py_runtime.decoder.rotary import rotary_tables

PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
DIMS = 12
PERIODS = 10000.0 ** (np.arange(0, DIMS, 2) / DIMS)


def frequencies(rope: dict[str, Any], positions: int = 9) -> np.ndarray:
    """Return the pairs' frequencies, from the angles at position 1; small enough for arctan."""
    cos, sin = rotary_tables(rope, DIMS, positions)
    assert cos.shape == sin.shape == (positions, DIMS)
    assert np.array_equal(cos[:, : DIMS // 2], cos[:, DIMS // 2 :])
    return np.arctan2(sin[1, : DIMS // 2], cos[1, : DIMS // 2])


def scale(rope: dict[str, Any], positions: int = 9) -> float:
    """Return the factor of cos and sin: the cosine of no angle."""
    return float(rotary_tables(rope, DIMS, positions)[0][0, 0])


def test_plain_frequencies() -> None:
    np.testing.assert_allclose(frequencies(PLAIN), 1 / PERIODS, rtol=1e-5)
    assert scale(PLAIN) == 1.0
    assert scale(PLAIN | {"attn_factor": 1.5}) == 1.5


LONG = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "original_max_position_embeddings": 8,
    "short_factor": [2.0] * 6,
    "long_factor": [4.0] * 6,
}


@pytest.mark.parametrize(("positions", "factor"), [(7, 2), (8, 2), (9, 4)])
def test_factors_go_by_the_length_of_the_table(positions: int, factor: float) -> None:
    np.testing.assert_allclose(frequencies(LONG, positions), 1 / PERIODS / factor, rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, 1.0),
        ({"factor": None}, 1.0),
        ({"factor": 1.0}, 1.0),
        ({"factor": 0.5}, 1.0),
        ({"factor": 8.0}, math.sqrt(2)),
        ({"factor": 64.0}, math.sqrt(3)),
        ({"factor": 64.0, "attention_factor": 1.25}, 1.25),
    ],
)
def test_the_scale_of_longrope(given: dict[str, Any], wanted: float) -> None:
    assert scale(LONG | given) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("given", "turning", "factor"),
    [
        ({}, 6, 1.0),
        ({"partial_rotary_factor": 0.5}, 3, 1.0),
        ({"partial_rotary_factor": 0.25}, 1, 1.0),
        ({"partial_rotary_factor": 0.5, "factor": 4.0}, 3, 4.0),
    ],
)
def test_of_proportional_tables_the_first_pairs_turn(
    given: dict[str, Any], turning: int, factor: float
) -> None:
    found = frequencies({"rope_type": "proportional", "rope_theta": 10000.0, **given})
    wanted = np.where(np.arange(6) < turning, 1 / PERIODS / factor, 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, 0.1 * math.log(4) + 1),
        ({"factor": 1.0}, 1.0),
        ({"factor": 0.5}, 1.0),
        ({"attention_factor": 1.25}, 1.25),
        ({"mscale": 2.0}, 0.1 * math.log(4) + 1),
        ({"mscale_all_dim": 2.0}, 0.1 * math.log(4) + 1),
        ({"mscale": 0.0, "mscale_all_dim": 2.0}, 0.1 * math.log(4) + 1),
        (
            {"mscale": 2.0, "mscale_all_dim": 3.0},
            (0.2 * math.log(4) + 1) / (0.3 * math.log(4) + 1),
        ),
        ({"attention_factor": 1.25, "attn_factor": 2.0}, 2.5),
    ],
)
def test_the_scale_of_yarn(given: dict[str, Any], wanted: float) -> None:
    assert scale(YARN | given) == pytest.approx(wanted, rel=1e-6)


def test_betas_of_yarn_may_be_left_out() -> None:
    far = YARN | {"original_max_position_embeddings": 4096}
    usual = frequencies(far | {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": True})
    for given in ({}, {"beta_fast": None, "beta_slow": 0}, {"extrapolation_factor": 1.0}):
        np.testing.assert_array_equal(frequencies(far | given), usual)
    for other in ({"beta_fast": 4.0}, {"beta_slow": 8.0}, {"truncate": False}):
        assert not np.allclose(frequencies(far | other), usual, atol=0)


def test_a_ramp_of_no_width() -> None:
    """Both ends fall on the same pair: what comes before it stays, what follows is stretched."""
    turns = 32 / (2 * math.pi * 10000.0 ** (2 / 6))  # of the pair in the middle
    rope = YARN | {"beta_fast": turns, "beta_slow": turns, "truncate": False}
    plain, found = 1 / PERIODS, frequencies(rope)
    np.testing.assert_allclose(found[:2], plain[:2], rtol=1e-5)
    np.testing.assert_allclose(found[3:], plain[3:] / 4, rtol=1e-5)
