"""Rows of a tensor of a GGUF file."""

from collections.abc import Sequence

import numpy as np

from py_runtime.gguf.dequantise import dequantise
from py_runtime.gguf.reader import StoredTensor
from py_runtime.weights.kept_rows import KeptRows


class GgufTokenRows(KeptRows):
    """The rows of a matrix of any type: `stored` has the dims [rows, columns]."""

    def __init__(self, stored: StoredTensor) -> None:
        super().__init__(columns=stored.info.dims[1])
        self._stored = stored

    async def read_row(self, token: int) -> bytes:
        info = self._stored.info
        nbytes = info.nbytes // info.dims[0]
        return await self._stored.source.read(info.offset + token * nbytes, nbytes)

    def dense(self, rows: Sequence[bytes]) -> np.ndarray:
        data = np.frombuffer(b"".join(rows), np.uint8)
        self._stored.check_finite(data)
        return dequantise(self._stored.info.kind, data)
