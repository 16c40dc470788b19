"""Experts of Granite checkpoints: all of a layer in one tensor, [experts, rows, columns].

Gate and up of an expert are one, the gate first.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

BOTH = {"gate_proj": 0, "up_proj": 1}  # of which each is half of the rows


class StackedExperts:
    """The experts by the decoder's names: layers.0.mlp.experts.up_proj.weight."""

    def __init__(self, files: Mapping[str, Any], stored_name: Callable[[str], str]) -> None:
        self._files = files  # tensor → the file that has it
        self._stored_name = stored_name

    def shape(self, name: str) -> tuple[int, ...] | None:
        stored = self._stored_name(name)
        if stored not in self._files:
            return None
        found = tuple(self._files[stored].get_slice(stored).get_shape())
        halves = 2 if _place(name) in BOTH else 1
        if len(found) != 3 or found[1] % halves:
            return found  # as it is, to be told of
        experts, rows, columns = found
        return (experts * rows // halves, columns)

    def dense(self, name: str) -> np.ndarray:
        stored = self._stored_name(name)
        tensor = self._files[stored].get_slice(stored)
        _, rows, columns = tensor.get_shape()
        half = BOTH.get(_place(name))
        if half is not None:
            rows //= 2
        first = rows * (half or 0)
        array: np.ndarray = tensor[:, first : first + rows].float().numpy()
        return np.ascontiguousarray(array).reshape(-1, columns)


def _place(name: str) -> str:
    """layers.0.mlp.experts.up_proj.weight: up_proj."""
    return name.split(".")[-2]
