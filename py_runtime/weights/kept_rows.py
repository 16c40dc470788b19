"""Rows of a table that stays off the GPU, read one by one as tokens ask for them."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from py_runtime.base.concurrency import together

AT_ONCE = 16  # reads under way
KEPT_ROWS = 1024  # as they are stored: conversations use the same tokens again and again


class KeptRows(ABC):
    """A table of rows; the rows used last are kept and not read again."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._kept: OrderedDict[int, bytes] = OrderedDict()  # the one used last at the end

    @abstractmethod
    async def read_row(self, token: int) -> bytes:
        """Read the stored bytes of one row."""

    @abstractmethod
    def dense(self, rows: Sequence[bytes]) -> np.ndarray:
        """Return these rows dequantised as f32."""

    async def read(self, tokens: Sequence[int]) -> np.ndarray:
        """Return the rows of these tokens: f32 [1, S, columns]."""
        missing = [token for token in dict.fromkeys(tokens) if token not in self._kept]
        found = {token: self._kept[token] for token in tokens if token in self._kept}
        for at in range(0, len(missing), AT_ONCE):
            run = missing[at : at + AT_ONCE]
            found |= zip(run, await together(*map(self.read_row, run)), strict=True)
        self._keep(found)
        dense = self.dense([found[token] for token in tokens])
        return dense.reshape(1, len(tokens), self.columns)

    def _keep(self, used: dict[int, bytes]) -> None:
        for token, row in used.items():
            self._kept[token] = row
            self._kept.move_to_end(token)
        while len(self._kept) > KEPT_ROWS:
            self._kept.popitem(last=False)
