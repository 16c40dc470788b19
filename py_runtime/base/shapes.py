"""Shape arithmetic: one helper for each question, used by the engine and every op."""

from collections.abc import Iterable, Sequence
from math import prod

from py_runtime.base.errors import InputError

Dims = tuple[int, ...]
MAX_ELEMENTS = 2**31 - 1  # kernels index with 32-bit integers


def numel(dims: Iterable[int]) -> int:
    """Return the number of elements; 1 for no dims at all."""
    return prod(dims)


def ceil_div(value: int, by: int) -> int:
    """Divide and round up."""
    return -(-value // by)


def round_up(value: int, to: int) -> int:
    """Return the next multiple, or the value itself if it is one."""
    return ceil_div(value, to) * to


def normalise_dim(dim: int, rank: int) -> int:
    """Return a dim counted from 0; -1 is the last dimension, as in torch."""
    if not -rank <= dim < rank:
        raise InputError(
            f"dimension {dim} is outside [{-rank}, {rank - 1}] of a rank {rank} tensor"
        )
    return dim % rank


def strides_of(dims: Sequence[int]) -> Dims:
    """Return row-major strides in elements."""
    strides, step = [], 1
    for size in reversed(dims):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def broadcast(a: Sequence[int], b: Sequence[int]) -> Dims:
    """Return the shape that both broadcast to, right-aligned, as in torch."""
    rank = max(len(a), len(b))
    padded_a, padded_b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    if any(x != y and 1 not in (x, y) for x, y in zip(padded_a, padded_b, strict=True)):
        raise InputError(f"shapes {list(a)} and {list(b)} do not broadcast")
    return tuple(y if x == 1 else x for x, y in zip(padded_a, padded_b, strict=True))


def broadcasts_to(dims: Sequence[int], wanted: Sequence[int]) -> bool:
    """Return whether `dims` broadcasts to exactly `wanted`."""
    pairs = zip(reversed(dims), reversed(wanted), strict=False)
    return len(dims) <= len(wanted) and all(size in (1, most) for size, most in pairs)


def broadcast_strides(dims: Sequence[int], wanted: Sequence[int]) -> Dims:
    """Return strides that read `dims` as the shape `wanted`: 0 where a dimension stretches."""
    lead = len(wanted) - len(dims)
    own = strides_of(dims)
    return (0,) * lead + tuple(
        0 if size == 1 and wanted[lead + axis] != 1 else own[axis] for axis, size in enumerate(dims)
    )
