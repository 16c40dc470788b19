"""Rows along any dim: a tensor as [outer, width, inner], and how a long row is cut into parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

from py_runtime.base.shapes import numel

LONGEST_UNCUT = 256  # elements that one invocation takes alone


@dataclass(frozen=True)
class Rows:
    """Rows of `width` elements that stand `inner` apart."""

    outer: int
    width: int
    inner: int

    @property
    def count(self) -> int:
        return self.outer * self.inner


def rows_along(dims: Sequence[int], first: int, last: int) -> Rows:
    """Rows along the neighbouring dims first..last, both included; rank 0 is one row of one."""
    return Rows(numel(dims[:first]), numel(dims[first : last + 1]), numel(dims[last + 1 :]))


def part_count(width: int) -> int:
    """Return how many invocations share a row of this width: two passes of equal length."""
    return isqrt(width) if width > LONGEST_UNCUT else 1
