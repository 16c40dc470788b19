"""The filters top_k, top_p and min_p, without sorting a vocabulary.

Each returns the indices that stay, ascending; at least one stays. They keep what transformers'
warpers keep: top_k with everything that ties with the k-th, top_p with the token that reaches it.
(Which of equal tokens top_p keeps is open there, by an unstable sort; here it is the lowest ids.)
"""

import math

import numpy as np

FIRST_LOOK = 256  # top_p rarely needs more tokens than that
BIN_SHIFT = 48  # leaves sign, exponent and 4 bits of a float64's mantissa: 16 bins an octave
COLUMNS_PER_VALUE = 8  # so that few of the largest values share a column


def top_k(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the `count` largest scores, with all that tie with the last of them."""
    near = largest(scores, count)
    if len(near) <= count:
        return near
    nearby = scores[near]
    place = len(near) - count
    return np.compress(nearby >= np.partition(nearby, place)[place], near)


def top_p(weights: np.ndarray, share: float) -> np.ndarray:
    """Return the fewest of the largest float64 weights that hold this share of all weight."""
    needed = share * weights.sum()
    near = largest(weights, FIRST_LOOK)
    if weights[near].sum() >= needed:
        return np.take(near, _fewest(weights[near], needed))
    return _fewest(weights, needed)


def _fewest(weights: np.ndarray, needed: float) -> np.ndarray:
    """Return the fewest weights that add up to `needed`.

    The weights go into bins, the heaviest first; only the bin where the cut falls is sorted.
    """
    # The bits of floats from 0 on are ordered as the floats are, and so are their upper bits.
    upper_bits = weights.view(np.int64) >> BIN_SHIFT
    bins = (upper_bits.max() - upper_bits).astype(np.intp)
    together = np.cumsum(np.bincount(bins, weights))
    edge = int(np.searchsorted(together, needed))  # beyond the last bin, all weights stay
    within = np.flatnonzero(bins == edge)
    falling = within[np.argsort(-weights[within], kind="stable")]  # of equal ones the first stay
    before = together[edge - 1] if edge else 0.0
    reaching = np.searchsorted(before + np.cumsum(weights[falling]), needed)
    return np.sort(np.concatenate([np.flatnonzero(bins < edge), falling[: reaching + 1]]))


def min_p(scores: np.ndarray, share: float, temperature: float) -> np.ndarray:
    """Return those with at least this share of the most probable one's probability."""
    peak = np.float64(scores.max())  # not float: numpy would round the sum to the scores' f32
    return np.flatnonzero(scores >= peak + temperature * math.log(share))


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the indices, ascending, of the `count` largest values and perhaps a few more.

    Values [rows * columns] are looked at as a table: at least `count` values reach the `count`-th
    largest of the columns' maxima. Partitioning the maxima is far less work than partitioning the
    values.
    """
    if count >= len(values):
        return np.arange(len(values))
    rows = max(1, len(values) // (COLUMNS_PER_VALUE * count))
    columns = len(values) // rows
    maxima = values[: rows * columns].reshape(rows, columns).max(axis=0)  # [columns]
    floor = np.partition(maxima, columns - count)[columns - count]
    return np.flatnonzero(values >= floor)
