"""Points in two dimensions for vectors in many: principal components, neighbours, groups.

The same vectors give the same points. t-SNE is the exact one of van der Maaten and Hinton (2008),
which compares every point with every other one.
"""

import asyncio
from collections.abc import Callable

import numpy as np

from py_runtime.base.cancel import CancelToken

Progress = Callable[[int, int], None]  # (done, of all)

OVERSAMPLED, ITERATIONS = 10, 5  # of the subspace that principal components are found in
NOISE = 1e-6  # of the largest component: what is smaller says nothing
PERPLEXITY = 30.0  # neighbours that count for a point
LOG_PRECISION, HALVINGS = (-12.0, 25.0), 24  # between which it is sought, and how closely
ROWS = 256  # at a time, of what is as long as it is wide
STEPS, EXAGGERATED, EXAGGERATION = 500, 150, 12.0
MOMENTUM = (0.5, 0.8)  # while exaggerated, and then
FEWEST = 8  # points: fewer have no neighbours to choose from, and stay where they start
MOST_GROUPS, STARTS, ROUNDS = 8, 4, 50
LEAST_APART = 0.1  # the mean silhouette of groups that are worth a colour
TINY = 1e-12


async def principal(
    vectors: np.ndarray, count: int, cancel: CancelToken
) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates [N, count] along the principal components, and each one's share of it all.

    They are found in a subspace that is a little larger (Halko et al. 2011); where there are no
    more vectors than that, they are exact. Directions in which nothing differs are zeros.
    """
    rows = np.asarray(vectors, np.float64)
    rows = rows - rows.mean(axis=0)
    size = min(count + OVERSAMPLED, *rows.shape)
    guess = np.random.default_rng(0).standard_normal((rows.shape[1], size))
    basis, _ = np.linalg.qr(rows @ guess)  # [N, size]
    for _ in range(ITERATIONS):
        await asyncio.sleep(0)  # a caller may cancel
        cancel.check()
        basis, _ = np.linalg.qr(rows @ (rows.T @ basis))
    left, lengths, _ = np.linalg.svd(basis.T @ rows, full_matrices=False)
    found = (basis @ left * lengths)[:, :count]
    lengths = lengths[:count]
    found[:, lengths <= NOISE * max(float(lengths[0]), NOISE)] = 0
    largest = found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])]
    found *= np.where(largest < 0, -1, 1)  # of the two directions, always the same
    total = max(float(np.square(rows).sum()), TINY)
    missing = count - found.shape[1]
    shares = np.square(lengths) / total * (total > TINY)
    return np.pad(found, ((0, 0), (0, missing))), np.pad(shares, (0, missing))


async def neighbours(
    points: np.ndarray, start: np.ndarray, progress: Progress, cancel: CancelToken
) -> np.ndarray:
    """Return t-SNE's places [N, 2] for points [N, D], from a start [N, 2] on; STEPS are told."""
    count = len(points)
    if count < FEWEST:
        progress(STEPS, STEPS)
        return start
    wanted = await _affinities(points, cancel)
    places = np.asarray(start / max(float(start.std()), TINY) * 1e-4, np.float32)
    moved = np.zeros_like(places)
    gains = np.ones_like(places)
    near, pull = np.empty_like(wanted), np.empty_like(wanted)
    rate = max(count / EXAGGERATION, min(count / 2, 50.0))
    for step in range(STEPS):
        await asyncio.sleep(0)  # a caller may cancel
        cancel.check()
        is_early = step < EXAGGERATED
        squares = np.square(places).sum(axis=1)
        np.matmul(places, -2 * places.T, out=near)
        near += squares[:, None]
        near += squares + 1
        np.maximum(near, 1, out=near)  # rounding
        np.reciprocal(near, out=near)
        np.fill_diagonal(near, 0)
        np.multiply(near, -1 / float(near.sum(dtype=np.float64)), out=pull)
        pull += wanted * np.float32(EXAGGERATION) if is_early else wanted
        pull *= near
        slope = 4 * (places * pull.sum(axis=1)[:, None] - pull @ places)
        gains = np.where(slope * moved < 0, gains + 0.2, np.maximum(gains * 0.8, 0.01))
        moved = MOMENTUM[not is_early] * moved - np.float32(rate) * gains * slope
        places = places + moved
        places -= places.mean(axis=0)
        progress(step + 1, STEPS)
    return places


async def _affinities(points: np.ndarray, cancel: CancelToken) -> np.ndarray:
    """Return how likely each two points are neighbours: f32 [N, N], symmetric, of sum 1."""
    count = len(points)
    squared = squared_distances(points)
    squared /= max(float(squared.mean()), TINY)
    goal = np.log(min(PERPLEXITY, (count - 1) / 3))
    found = np.empty((count, count), np.float32)
    for begin in range(0, count, ROWS):
        await asyncio.sleep(0)
        cancel.check()
        rows = squared[begin : begin + ROWS]
        own = np.arange(len(rows)), np.arange(begin, begin + len(rows))
        rows[own] = np.inf
        rows -= rows.min(axis=1, keepdims=True)
        low, high = (np.full(len(rows), edge) for edge in LOG_PRECISION)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            precision = np.exp(middle)[:, None]
            weights = np.exp(-rows * precision)
            totals = weights.sum(axis=1)
            costs = np.where(weights > 0, rows, 0) * weights
            entropy = np.log(totals) + precision[:, 0] * costs.sum(axis=1) / totals
            low, high = np.where(entropy > goal, (middle, high), (low, middle))
        found[begin : begin + ROWS] = weights / totals[:, None]
    found += found.T.copy()
    found /= found.sum(dtype=np.float64)
    return found


def squared_distances(points: np.ndarray) -> np.ndarray:
    """Return those between each two points [N, D]: f64 [N, N], zero from each to itself."""
    squares = np.square(points).sum(axis=1)
    found = squares[:, None] + squares - 2 * (points @ points.T)
    np.fill_diagonal(found, 0)
    return np.asarray(np.maximum(found, 0))


# Groups ------------------------------------------------------------------------------------------


async def groups(points: np.ndarray, cancel: CancelToken) -> np.ndarray:
    """Return the group of each point: i32 [N], the largest one first; one if none stand apart.

    These are k-means', as many as have the best silhouettes, up to the root of N: how much nearer
    points are to their own group than to the next one. Groups count alike, whatever their size,
    and an outlier is none.
    """
    best = np.zeros(len(points), np.int32)
    apart = LEAST_APART
    distances = np.sqrt(squared_distances(points))
    for count in range(2, min(MOST_GROUPS, round(len(points) ** 0.5)) + 1):
        await asyncio.sleep(0)
        cancel.check()
        found = _k_means(points, count)
        score = _silhouette(distances, found)
        if score > apart:
            best, apart = found, score
    sizes = np.bincount(best)
    order = np.argsort(-sizes, kind="stable")
    return np.asarray(np.argsort(order, kind="stable")[best], np.int32)


def _k_means(points: np.ndarray, count: int) -> np.ndarray:
    """Return the nearest of `count` centres for each point, the best of a few starts."""
    random = np.random.default_rng(0)
    best, least = np.zeros(len(points), np.intp), np.inf
    for _ in range(STARTS):
        centres = _spread_centres(points, count, random)
        for _ in range(ROUNDS):
            squared = _to_centres(points, centres)
            found = squared.argmin(axis=1)
            members = np.eye(count)[found]  # [N, count]
            sizes = members.sum(axis=0)[:, None]
            moved = np.where(sizes > 0, members.T @ points / np.maximum(sizes, 1), centres)
            if np.allclose(moved, centres):
                break
            centres = moved
        cost = float(squared.min(axis=1).sum())
        if cost < least:
            best, least = found, cost
    return np.unique(best, return_inverse=True)[1]  # without groups that are empty


def _spread_centres(points: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Return points that lie apart, as k-means++ chooses them."""
    chosen = [int(random.integers(len(points)))]
    while len(chosen) < count:
        weights = _to_centres(points, points[chosen]).min(axis=1)
        total = weights.sum()
        shares = weights / total if total > 0 else None
        chosen.append(int(random.choice(len(points), p=shares)))
    return np.asarray(points[chosen])


def _to_centres(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return squared distances [N, centres]."""
    squares = np.square(points).sum(axis=1)[:, None] + np.square(centres).sum(axis=1)
    return np.asarray(np.maximum(squares - 2 * (points @ centres.T), 0))


def _silhouette(distances: np.ndarray, found: np.ndarray) -> float:
    """Return the mean over groups of the mean silhouettes of their points, less who is alone."""
    members = np.eye(int(found.max()) + 1)[found]  # [N, groups]
    sizes = members.sum(axis=0)
    is_group = sizes > 1
    if is_group.sum() < 2:
        return 0.0
    sums = distances @ members
    rows = np.arange(len(found))
    own = sums[rows, found] / np.maximum(sizes[found] - 1, 1)
    others = sums / sizes
    others[rows, found] = np.inf
    nearest = others.min(axis=1)
    scores = (nearest - own) / np.maximum(np.maximum(nearest, own), TINY)
    means = (members.T @ scores / sizes)[is_group]
    return float(means.mean() * sizes[is_group].sum() / len(found))
