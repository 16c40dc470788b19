"""Rows of a tensor of a GGUF file."""

from collections.abc import Sequence

import numpy as np

from py_runtime.gguf.dequantise import dequantise
from py_runtime.gguf.errors import GgufError, shown
from py_runtime.gguf.planes import are_finite
from py_runtime.gguf.reader import StoredTensor
from py_runtime.weights.kept_rows import KeptRows


class GgufTokenRows(KeptRows):
    """Of a matrix of any type: `stored` has the dims [rows, columns]."""

    def __init__(self, stored: StoredTensor) -> None:
        super().__init__(columns=stored.info.dims[1])
        self._stored = stored

    async def read_row(self, token: int) -> bytes:
        info = self._stored.info
        nbytes = info.nbytes // info.dims[0]
        return await self._stored.source.read(info.offset + token * nbytes, nbytes)

    def dense(self, rows: Sequence[bytes]) -> np.ndarray:
        data, info = np.frombuffer(b"".join(rows), np.uint8), self._stored.info
        if not are_finite(info.kind, data):
            raise GgufError(
                f"{self._stored.source.name}: the tensor {shown(info.name)} has numbers that are "
                "infinite or none"
            )
        return dequantise(info.kind, data)
