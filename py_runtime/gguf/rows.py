"""Rows of a tensor of a GGUF file, read one by one as tokens ask for them."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from py_runtime.base.concurrency import together
from py_runtime.gguf.dequantise import dequantise
from py_runtime.gguf.errors import GgufError, shown
from py_runtime.gguf.planes import are_finite
from py_runtime.gguf.reader import StoredTensor

AT_ONCE = 16  # reads under way
KEPT_ROWS = 1024  # as they are stored: conversations use the same tokens again and again


class GgufRows:
    """Of a matrix of any type: `stored` has the dims [rows, columns]."""

    def __init__(self, stored: StoredTensor) -> None:
        self._stored = stored
        self._kept: OrderedDict[int, bytes] = OrderedDict()  # the one used last at the end

    @property
    def columns(self) -> int:
        return self._stored.info.dims[1]

    async def read(self, tokens: Sequence[int]) -> np.ndarray:
        """f32 [1, S, columns]."""
        missing = [token for token in dict.fromkeys(tokens) if token not in self._kept]
        found: dict[int, bytes] = {}
        for at in range(0, len(missing), AT_ONCE):
            run = missing[at : at + AT_ONCE]
            found |= zip(run, await together(*map(self._read_row, run)), strict=True)
        found |= {token: self._kept[token] for token in tokens if token in self._kept}
        self._keep(found)
        data = np.frombuffer(b"".join(found[token] for token in tokens), np.uint8)
        info = self._stored.info
        if not are_finite(info.kind, data):
            raise GgufError(
                f"{self._stored.source.name}: the tensor {shown(info.name)} has numbers that are "
                "infinite or none"
            )
        return dequantise(info.kind, data).reshape(1, len(tokens), self.columns)

    async def _read_row(self, token: int) -> bytes:
        info = self._stored.info
        nbytes = info.nbytes // info.dims[0]
        return await self._stored.source.read(info.offset + token * nbytes, nbytes)

    def _keep(self, used: dict[int, bytes]) -> None:
        for token, row in used.items():
            self._kept[token] = row
            self._kept.move_to_end(token)
        while len(self._kept) > KEPT_ROWS:
            self._kept.popitem(last=False)
