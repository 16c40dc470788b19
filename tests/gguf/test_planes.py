"""Blocks split into planes: nothing is lost, and nothing grows."""

from itertools import pairwise

import numpy as np
import pytest

from py_runtime.gguf.plane_values import dense
from py_runtime.gguf.planes import HALVES_AT, are_finite, planes
from py_runtime.gguf.tensor_types import BY_NAME
from tests.gguf.blocks import TYPES, random_weight

QUANTISED = [name for name in TYPES if name not in ("F16", "BF16")]


@pytest.mark.parametrize("rows", [5, 8])
@pytest.mark.parametrize("name", TYPES)
def test_planes_mean_the_values_of_the_blocks(name: str, rows: int) -> None:
    weight = random_weight(name, rows, 768, np.random.default_rng(rows))
    parts = weight.parts()
    assert sum(part.nbytes for part in parts.values()) == weight.raw.nbytes
    values = dense(weight.kind.name, parts["weight"], parts.get("scales"))
    np.testing.assert_array_equal(values, weight.values)


@pytest.mark.parametrize("name", QUANTISED)
def test_pieces_are_the_parts_of_the_whole(name: str) -> None:
    """Each piece has an even number of blocks, but for the last."""
    raw = random_weight(name, 7, 768, np.random.default_rng(1)).raw.reshape(-1)
    kind = BY_NAME[name]
    cuts = [0, 4 * kind.nbytes, 10 * kind.nbytes, len(raw)]
    pieces = [planes(kind, raw[a:b]) for a, b in pairwise(cuts)]
    for part, whole in planes(kind, raw).items():
        np.testing.assert_array_equal(np.concatenate([piece[part] for piece in pieces]), whole)


@pytest.mark.parametrize("name", TYPES)
def test_what_is_no_number_is_seen(name: str) -> None:
    weight = random_weight(name, 3, 768, np.random.default_rng(2))
    kind, raw = BY_NAME[name], weight.raw.reshape(-1).copy()
    assert are_finite(kind, raw)
    places = HALVES_AT.get(name, (0,))
    for place in places:
        spoilt = raw.copy()
        at = 2 * kind.nbytes + place
        spoilt[at : at + 2] = 255 if name in ("MXFP4", "BF16") else (0, 0x7C)
        assert not are_finite(kind, spoilt)
