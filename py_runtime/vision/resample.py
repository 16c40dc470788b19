"""Images scaled as Pillow scales them, to the last bit: models were trained with what it gives.

Sizes are changed line by line, then column by column. Each new value is a weighted sum of bytes,
with weights of 22 bits, and a byte again.
"""

import math
from collections.abc import Callable

import numpy as np

PRECISION = 22  # bits of a weight
LANCZOS_REACH, BICUBIC_REACH, BILINEAR_REACH = 3.0, 2.0, 1.0
BICUBIC_BEND = -0.5
HALF = 1 << (PRECISION - 1)

Filter = tuple[Callable[[np.ndarray], np.ndarray], float]


def _lanczos(x: np.ndarray) -> np.ndarray:
    within = np.sinc(x) * np.sinc(x / LANCZOS_REACH)
    return np.where(np.abs(x) < LANCZOS_REACH, within, 0.0)


def _bicubic(x: np.ndarray) -> np.ndarray:
    x, a = np.abs(x), BICUBIC_BEND
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < BICUBIC_REACH, far, 0.0))


def _bilinear(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(x)))


LANCZOS: Filter = (_lanczos, LANCZOS_REACH)
BICUBIC: Filter = (_bicubic, BICUBIC_REACH)
BILINEAR: Filter = (_bilinear, BILINEAR_REACH)


def resized(image: np.ndarray, width: int, height: int, how: Filter = LANCZOS) -> np.ndarray:
    """Return an image u8 [H, W, C] in another size."""
    if image.shape[1] != width:
        turned = np.ascontiguousarray(image.transpose(1, 0, 2))
        image = np.ascontiguousarray(_with_lines(turned, width, how).transpose(1, 0, 2))
    return image if image.shape[0] == height else _with_lines(image, height, how)


def shares(size: int, wanted: int, how: Filter) -> np.ndarray:
    """Return what each of the old lines gives to each of the new ones: f64 [wanted, size]."""
    firsts, weights = _weights(size, wanted, how)
    found = np.zeros((wanted, size + weights.shape[1]))
    np.put_along_axis(found, firsts[:, None] + np.arange(weights.shape[1]), weights, axis=1)
    return found[:, :size]


def _with_lines(image: np.ndarray, count: int, how: Filter) -> np.ndarray:
    """Return the image [H, W, C] with another number of lines."""
    firsts, weights = _weights(image.shape[0], count, how)
    scaled = weights * (1 << PRECISION)
    weights = np.trunc(scaled + np.copysign(0.5, scaled))
    flat = image.reshape(image.shape[0], -1)
    out = np.empty((count, flat.shape[1]), np.uint8)
    for line, (first, own) in enumerate(zip(firsts.tolist(), weights, strict=True)):
        # Doubles hold these whole numbers exactly.
        seen = flat[first : first + len(own)].astype(np.float64)
        sums = own[: len(seen)] @ seen
        sums += HALF
        sums *= 1 / (2 * HALF)
        np.floor(sums, out=sums)
        np.clip(sums, 0, 255, out=sums)
        out[line] = sums
    return out.reshape(count, *image.shape[1:])


def _weights(size: int, wanted: int, how: Filter) -> tuple[np.ndarray, np.ndarray]:
    """Return the first line that each new one depends on, and the weights from there on.

    The weights are f64 [wanted, most]; each line's add up to 1.
    """
    shape, reach = how
    scale = size / wanted
    stretch = max(scale, 1.0)
    support = reach * stretch
    most = math.ceil(support) * 2 + 1
    centres = (np.arange(wanted) + 0.5) * scale
    firsts = np.maximum((centres - support + 0.5).astype(np.int64), 0)
    ends = np.minimum((centres + support + 0.5).astype(np.int64), size)
    taps = np.arange(most)
    places = firsts[:, None] + taps
    found = shape((places - centres[:, None] + 0.5) * (1.0 / stretch))
    found = np.where(places < ends[:, None], found, 0.0)
    return firsts, found / found.sum(axis=1, keepdims=True)
