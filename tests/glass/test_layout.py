"""Points in two dimensions for vectors in many."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.cancel import CancelToken
from py_runtime.glass.layout import STEPS, groups, neighbours, principal
from tests.runners import wait

WIDTH = 40


def clouds(*sizes: int, apart: float = 12.0) -> np.ndarray:
    """Return clouds of points, one of each size, far from each other."""
    random = np.random.default_rng(0)
    rows = [random.standard_normal((size, WIDTH)) for size in sizes]
    for at, cloud in enumerate(rows):
        cloud[:, at] += apart
    return np.concatenate(rows)


def components(vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    return wait(principal(vectors, count, CancelToken()))


def tsne(vectors: np.ndarray) -> np.ndarray:
    points, _ = components(vectors, 30)
    return wait(neighbours(points, points[:, :2], lambda *_: None, CancelToken()))


def grouped(vectors: np.ndarray) -> list[int]:
    found: list[int] = wait(groups(vectors, CancelToken())).tolist()
    return found


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (90, 70)])
def test_principal_components_are_numpys(shape: tuple[int, int]) -> None:
    vectors = np.random.default_rng(1).standard_normal(shape) * np.geomspace(9, 0.1, shape[1])
    points, shares = components(vectors, 3)
    centred = vectors - vectors.mean(axis=0)
    left, lengths, _ = np.linalg.svd(centred, full_matrices=False)
    wanted = left[:, :3] * lengths[:3]
    np.testing.assert_allclose(np.abs(points), np.abs(wanted), atol=5e-2)
    np.testing.assert_allclose(shares, (lengths**2 / (lengths**2).sum())[:3], atol=1e-4)
    assert (points.max(axis=0) >= -points.min(axis=0)).all(), "always the same way round"


@pytest.mark.parametrize("sizes", [(2, 2), (5, 9), (40, 40), (150, 50)])
def test_clouds_come_apart(sizes: tuple[int, int]) -> None:
    places = tsne(clouds(*sizes))
    parts = places[: sizes[0]], places[sizes[0] :]
    for own, other in (parts, parts[::-1]):
        for place in own:
            others = np.linalg.norm(own - place, axis=1)
            nearest = np.sort(others)[1]
            assert nearest < np.linalg.norm(other - place, axis=1).min()


def test_neighbours_stay_neighbours() -> None:
    """Points on a line in many dimensions are a line in two."""
    along = np.linspace(0, 30, 60)
    vectors = np.outer(along, np.ones(WIDTH)) + np.random.default_rng(2).standard_normal(
        (60, WIDTH)
    )
    places = tsne(vectors)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert np.median(steps) * 15 < np.linalg.norm(places[0] - places[-1])


SMALL: dict[str, Any] = {
    "one": np.ones((1, WIDTH)),
    "two": np.eye(2, WIDTH),
    "three": np.eye(3, WIDTH),
    "the same": np.ones((6, WIDTH)),
    "all but one the same": np.concatenate([np.ones((6, WIDTH)), np.zeros((1, WIDTH))]),
    "huge": np.eye(5, WIDTH) * 1e18,
    "tiny": np.eye(5, WIDTH) * 1e-18,
}


@pytest.mark.parametrize("name", SMALL)
def test_all_of_it_is_finite(name: str) -> None:
    vectors = SMALL[name]
    points, shares = components(vectors, 30)
    places = tsne(vectors)
    assert points.shape == (len(vectors), 30)
    assert all(np.isfinite(found).all() for found in (points, shares, places))
    assert len(grouped(points)) == len(vectors)


def test_the_same_vectors_give_the_same_places() -> None:
    vectors = clouds(30, 20)
    np.testing.assert_array_equal(tsne(vectors), tsne(vectors.copy()))


def test_every_step_is_told() -> None:
    for count in (2, 9):
        steps: list[tuple[int, int]] = []
        points = clouds(count)
        wait(neighbours(points, points[:, :2], lambda *s, to=steps: to.append(s), CancelToken()))
        assert steps[-1] == (STEPS, STEPS)


def test_groups_are_the_clouds_the_largest_first() -> None:
    assert grouped(clouds(4, 9, 6)) == [2] * 4 + [0] * 9 + [1] * 6


def test_one_cloud_is_one_group() -> None:
    assert set(grouped(clouds(60))) == {0}


def test_an_outlier_is_no_group_against_all_others() -> None:
    found = grouped(np.concatenate([clouds(12, 12), np.full((1, WIDTH), 30.0)]))
    assert set(found[:12]).isdisjoint(found[12:24])
