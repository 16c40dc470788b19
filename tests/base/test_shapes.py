"""Dims as callers count them, from either end."""

import pytest

from py_runtime.base.errors import InputError
from py_runtime.base.shapes import normalise_dim, round_up


def test_normalise_dim() -> None:
    assert [normalise_dim(dim, 3) for dim in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    for dim in (-4, 3):
        with pytest.raises(InputError, match=rf"dimension {dim} is outside \[-3, 2\]"):
            normalise_dim(dim, 3)


def test_round_up() -> None:
    assert [round_up(value, 16) for value in (0, 1, 15, 16, 17)] == [0, 16, 16, 16, 32]
