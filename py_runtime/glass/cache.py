"""The activations of a run by the names of their hooks."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from py_runtime.base.html import as_html
from py_runtime.glass.points import full_name


class ActivationCache(Mapping[str, np.ndarray]):
    """Arrays with a batch of 1, as TransformerLens has them.

    cache["blocks.3.hook_resid_post"] and cache["resid_post", 3] are the same.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: Any) -> np.ndarray:
        full = full_name(name)
        if full not in self._arrays:
            raise KeyError(f"{name!r} is not among the {len(self)} activations that were kept")
        return self._arrays[full]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def stack_activation(self, name: str) -> np.ndarray:
        """Return an activation of all layers that have it: [layers, 1, S, ...]."""
        ending = full_name((name, 0)).removeprefix("blocks.0.")
        found = [array for full, array in self.items() if full.endswith(f".{ending}")]
        return np.stack(found)

    def _repr_html_(self) -> str:
        rows = [(name, str(list(array.shape))) for name, array in self.items()]
        return as_html("Activations", [f"{len(self)} of one run"], ("hook", "shape"), *rows)
