"""Parts that several views share."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from py_runtime.base.errors import RequestError

Data = dict[str, Any]
Progress = Callable[[int, int], None]  # (done, of all)


def ignore(done: int, total: int) -> None:
    """Ignore the progress that nobody watches."""


def checked_places(given: Any, count: int, name: str) -> list[int]:
    """Return places within a list as they are counted from its begin; None: all of them."""
    if given is None:
        return list(range(count))
    listed = [given] if isinstance(given, int) else given
    fault = f"{name} are integers from 0 to {count - 1}, or negative ones from the end"
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise RequestError(fault, name)
    if not all(type(each) is int and -count <= each < count for each in listed):
        raise RequestError(fault, name)
    return [each % count for each in listed]


def checked_count(given: Any, most: int, name: str) -> int:
    """Return a number of things to be listed."""
    if type(given) is not int or not 1 <= given <= most:
        raise RequestError(f"{name} must be an integer from 1 to {most}", name)
    return given


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return log probabilities of rows: f32 [N, V]."""
    peak = logits.max(axis=-1, keepdims=True)
    total = np.exp(logits - peak).sum(axis=-1, keepdims=True, dtype=np.float64)
    return np.asarray(logits - peak - np.log(total), np.float32)
