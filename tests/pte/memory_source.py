"""Bytes at hand, as a file."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from py_runtime.weights.byte_source import Pieces


class MemorySource:
    is_remote = False

    def __init__(self, data: bytes, name: str = "model.pte") -> None:
        self.name = name
        self.data = data
        self.bytes_read = 0

    async def size(self) -> int:
        return len(self.data)

    async def read(self, offset: int, nbytes: int) -> bytes:
        assert 0 <= offset <= offset + nbytes <= len(self.data), "only what is there is asked for"
        self.bytes_read += nbytes
        return self.data[offset : offset + nbytes]

    async def pieces(self, cuts: Sequence[int]) -> Pieces:
        for start, end in pairwise(cuts):
            yield start, np.frombuffer(self.data, np.uint8, end - start, start)
