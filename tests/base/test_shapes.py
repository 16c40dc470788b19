"""Shapes as NumPy sees them, from either end."""

from itertools import product

import numpy as np
import pytest

from py_runtime.base.errors import InputError
from py_runtime.base.shapes import (
    broadcast,
    broadcast_strides,
    broadcasts_to,
    ceil_div,
    normalise_dim,
    numel,
    round_up,
    strides_of,
)

SHAPES = [(), (1,), (3,), (5, 1), (5, 3), (1, 1, 3), (2, 5, 3), (2, 1, 1), (7,), (0, 3)]


def test_normalise_dim() -> None:
    assert [normalise_dim(dim, 3) for dim in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    for dim in (-4, 3):
        with pytest.raises(InputError, match=rf"dimension {dim} is outside \[-3, 2\]"):
            normalise_dim(dim, 3)


def test_round_up() -> None:
    assert [round_up(value, 16) for value in (0, 1, 15, 16, 17)] == [0, 16, 16, 16, 32]
    assert [ceil_div(value, 5) for value in (0, 1, 4, 5, 6)] == [0, 1, 1, 1, 2]


@pytest.mark.parametrize("dims", SHAPES)
def test_a_shape_is_numpys(dims: tuple[int, ...]) -> None:
    assert numel(dims) == np.zeros(dims).size
    if numel(dims):  # NumPy has other strides for nothing at all
        assert strides_of(dims) == np.zeros(dims, np.int8).strides


@pytest.mark.parametrize(("a", "b"), list(product(SHAPES, SHAPES)))
def test_two_shapes_stretch_as_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        wanted = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(InputError, match="do not broadcast"):
            broadcast(a, b)
        assert not broadcasts_to(a, b)
        return
    assert broadcast(a, b) == wanted
    assert broadcasts_to(a, b) == (wanted == b)
    if numel(wanted):
        stretched = np.broadcast_to(np.zeros(a, np.int8), wanted)
        assert address(broadcast_strides(a, wanted), wanted) == address(stretched.strides, wanted)


def address(strides: tuple[int, ...], dims: tuple[int, ...]) -> list[int]:
    """Return every element's address.

    A dimension with one element has a stride that does not matter.
    """
    return [int(np.dot(at, strides)) if strides else 0 for at in np.ndindex(*dims)]
