"""Vectors of chunks, a byte a number, and how alike each is to a question's."""

import numpy as np

TINY = 1e-12
LARGEST = 127


def packed(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [N, W] as signed bytes: only their directions count."""
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), TINY)
    return np.asarray(np.round(vectors / largest * LARGEST), np.int8)


class Directions:
    """The directions of chunks, ready to be compared.

    `is_centred`: what all of them share is left out. In hidden states of a decoder, which was not
    trained to tell texts apart, that is most.
    """

    def __init__(self, bytes_: np.ndarray, is_centred: bool) -> None:
        units = _units(bytes_.astype(np.float32))
        self._shared = units.mean(axis=0) if is_centred else np.zeros(units.shape[1], np.float32)
        self._units = _units(units - self._shared)  # [N, W]

    def cosines(self, question: np.ndarray) -> np.ndarray:
        """Return how alike each is to a question's vector [W], from -1 to 1: f32 [N]."""
        (unit,) = _units(question[None].astype(np.float32))
        (unit,) = _units(unit[None] - self._shared)
        return np.asarray(self._units @ unit)


def _units(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.float32(TINY)))
