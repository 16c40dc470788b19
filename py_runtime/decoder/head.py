"""The head that some models bring along: a small decoder that foresees what theirs will write.

At position p it reads where the model's layers ended there and the token that follows, and gives
the logits of the token after that. It looks tokens up, and turns what it has into logits, with the
model's own weights; between these it has one layer, with a cache of its own:

    x = in(norm(embedding of token p + 1), norm(end of position p))
    logits = head(norm(layer(x)))

The ends of all positions are a state that the model fills (DecoderWriter.ends). What the head has
itself in place of the next one is kept there, too, behind the last position: so its own graph goes
on from one proposal to the next, until the model comes there and fills it for good.

tokens: i64 [1, S], those behind positions pos … pos + S - 1; pos: i64 [1] → logits: [1, V].
"""

from collections.abc import Mapping

from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.program import DecoderWriter
from py_runtime.decoder.tensors import (
    HEAD_EMBEDDING,
    HEAD_IN,
    HEAD_NORM,
    HEAD_STATE,
    WeightKind,
)
from py_runtime.program import Program


def write_head(config: DecoderConfig, kinds: Mapping[str, WeightKind], name: str) -> Program:
    """Write the program of the head of a config that has one."""
    return _HeadWriter(config, kinds, name).write()


class _HeadWriter(DecoderWriter):
    def write(self) -> Program:
        c, writer, path = self.config, self.writer, f"layers.{self.config.layers}"
        dims, width = (*self.rows, c.width), c.width
        self._take_tokens()
        behind = writer.symint("behind")
        writer.op("add", self.start, self.length, behind)
        embedded = self._norm(f"{path}.{HEAD_EMBEDDING}", self._embedding(), dims)
        which = (self.ends, 1, self.start, behind, 1)
        ends = self._computed("aten.slice_copy.Tensor", (*self.rows, 1, width), *which)
        ends = self._norm(f"{path}.{HEAD_STATE}", self._heads(ends, dims), dims)
        both = self._computed("aten.cat.default", (*self.rows, 2 * width), [embedded, ends], 2)
        x = self._linear(f"{path}.{HEAD_IN}", both, self.rows)
        x = self._layer(c.layers, c.layer_kind(c.layers), x, True)
        end = self._norm(f"{path}.{HEAD_NORM}", self._last(x), (1, width))
        self._give_logits(end)
        row = self._tensor((1, 1, 1, width))
        writer.op("aten.view.default", end, [1, 1, 1, width], row)
        self._keep(row, behind)
        return writer.program()
