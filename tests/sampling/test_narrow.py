"""The candidates that stay, number by number, where every sum is exact or none is."""

import numpy as np
import pytest

from py_runtime.sampling.narrow import FIRST_LOOK, largest, top_p


def plain_top_p(weights: np.ndarray, share: float) -> list[int]:
    needed, together, kept = share * weights.sum(), 0.0, []
    for place in np.argsort(-weights, kind="stable").tolist():
        kept.append(place)
        together += weights[place]
        if together >= needed:
            break
    return sorted(kept)


@pytest.mark.parametrize("count", [1, 7, FIRST_LOOK, 4 * FIRST_LOOK])
def test_top_p_at_every_edge(count: int) -> None:
    """Whole numbers: any order of adding gives the same sum."""
    weights = np.random.default_rng(count).integers(1, 5000, count).astype(np.float64)
    falling = np.cumsum(np.sort(weights)[::-1])
    edges = falling[:: max(1, count // 40)] / falling[-1]
    for share in (*edges, *np.nextafter(edges, 0), *np.nextafter(edges, 1)):
        assert top_p(weights, share).tolist() == plain_top_p(weights, share), share


def test_top_p_of_everything_leaves_nothing_out() -> None:
    """Sums may be rounded to a little less than is needed; then all the weights stay."""
    for seed in range(50):
        weights = np.random.default_rng(seed).uniform(1, 2, 2000)
        kept = top_p(weights, 1.0)
        assert len(kept) >= len(weights) - 1
        assert set(kept) >= set(range(len(weights))) - {int(weights.argmin())}


@pytest.mark.parametrize("count", [1, 2, 40, 999, 1000, 1001])
def test_the_largest_and_a_few_more(count: int) -> None:
    values = np.random.default_rng(1).permutation(1000)
    found = largest(values, count)
    assert found.tolist() == sorted(found.tolist())
    assert set(found) >= set(np.argsort(-values)[:count].tolist())
    assert count <= len(found) + max(0, count - 1000)
    assert len(found) <= max(2 * count, 8)
