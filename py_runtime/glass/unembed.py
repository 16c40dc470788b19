"""The model's own way from its residual stream to logits, for many rows at once."""

from collections.abc import AsyncIterator

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.glass.anatomy import Anatomy
from py_runtime.glass.programs import part
from py_runtime.graph import Graph

CHUNK_BYTES = 16 << 20  # of logits that are computed at once
MAX_ROWS = 64


class Unembed:
    """The last norm, the head and what follows it, as a graph that shares the model's weights."""

    def __init__(self, graph: Graph, rows: int) -> None:
        self.graph = graph
        self.rows = rows  # at most, of one call

    @classmethod
    async def load(cls, base: Graph, anatomy: Anatomy) -> "Unembed":
        rows = max(1, min(MAX_ROWS, CHUNK_BYTES // (4 * anatomy.vocabulary)))
        row = anatomy.select.args[-1]
        program = part(
            anatomy.program, "unembedding", rows, [row], anatomy.tail, anatomy.program.outputs[0]
        )
        return cls(await Graph.load(base.device, program, base=base), rows)

    async def chunks(
        self, residual: np.ndarray, cancel: CancelToken
    ) -> AsyncIterator[tuple[int, np.ndarray]]:
        """Yield (first row, logits [n, V]) of rows of the stream: [N, W]."""
        given = np.ascontiguousarray(residual, np.float32)
        for first in range(0, len(given), self.rows):
            cancel.check()
            (logits,) = await self.graph.run([given[first : first + self.rows]])
            yield first, logits

    async def logits(self, residual: np.ndarray, cancel: CancelToken | None = None) -> np.ndarray:
        """Return the logits [N, V] of rows of the stream [N, W]."""
        found = [each async for _, each in self.chunks(residual, cancel or CancelToken())]
        return np.concatenate(found)
