"""Scales of queries: 1 within the original context, and more from each one passed."""

import math

import numpy as np
import pytest

from py_runtime.decoder.rotary import query_scales, rotary_tables

ORIGINAL, BETA = 4, 0.5
ROPE = {"original_max_position_embeddings": ORIGINAL, "llama_4_scaling_beta": BETA}


@pytest.mark.parametrize("position", [0, 1, 3, 4, 7, 8, 15, 16, 39])
def test_scales_grow_with_each_context_passed(position: int) -> None:
    passed = math.floor(position / ORIGINAL)
    found = query_scales(ROPE, 40)
    assert (found.shape, found.dtype) == ((40,), np.dtype("float32"))
    assert found[position] == pytest.approx(1 + BETA * math.log(1 + passed))


@pytest.mark.parametrize(("positions", "factor"), [(8, 2.0), (9, 4.0)])
def test_long_factors_begin_beyond_the_original_context(positions: int, factor: float) -> None:
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "original_max_position_embeddings": 8,
        "short_factor": [2.0, 2.0],
        "long_factor": [4.0, 4.0],
    }
    cos, sin = rotary_tables(rope, 4, positions)
    assert cos.shape == sin.shape == (positions, 4)
    assert cos[3, 0] == pytest.approx(math.cos(3 / factor))
    assert sin[3, 1] == pytest.approx(math.sin(3 * 10000**-0.5 / factor))
    assert sin[3, 2] == sin[3, 0]


@pytest.mark.parametrize(
    ("more", "scale"),
    [
        ({}, 1.0),
        ({"factor": 1.0}, 1.0),
        ({"factor": 4.0}, math.sqrt(1 + math.log(4) / math.log(8))),
        ({"factor": 4.0, "attention_factor": 1.25}, 1.25),
        ({"attn_factor": 1.5}, 1.5),
    ],
)
def test_scales_of_tables(more: dict[str, float], scale: float) -> None:
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "original_max_position_embeddings": 8,
        "short_factor": [1.0],
        "long_factor": [1.0],
    }
    cos, _ = rotary_tables(rope | more, 2, 3)
    assert cos[0, 0] == pytest.approx(scale)


@pytest.mark.parametrize(
    ("more", "scale"),
    [
        ({}, 0.1 * math.log(4) + 1),
        ({"factor": 1.0}, 1.0),
        ({"attention_factor": 1.25}, 1.25),
        ({"mscale": 2.0, "mscale_all_dim": 3.0}, (0.2 * math.log(4) + 1) / (0.3 * math.log(4) + 1)),
        ({"mscale": 2.0}, 0.1 * math.log(4) + 1),
        ({"mscale_all_dim": 3.0}, 0.1 * math.log(4) + 1),
    ],
)
def test_scales_of_yarn(more: dict[str, float], scale: float) -> None:
    rope = {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    cos, _ = rotary_tables(rope | more, 8, 3)
    assert cos[0] == pytest.approx([scale] * 8)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_pairs_that_do_not_turn(share: float) -> None:
    rope = {"rope_type": "proportional", "rope_theta": 10000.0, "partial_rotary_factor": share}
    cos, sin = rotary_tables(rope, 16, 3)
    turning = int(8 * share)
    assert np.count_nonzero(sin[1, :8]) == turning
    assert (cos[1, turning:8] == 1).all()
