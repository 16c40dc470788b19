"""The ops that the decoder's program is written with, each on weights of whatever kind."""

from collections.abc import Mapping

from py_runtime.base.dtypes import F32, DType
from py_runtime.base.shapes import Dims
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.tensors import WeightKind, bias_rows, expected_shapes, weight_parts
from py_runtime.program import op_names
from py_runtime.program.weight_kinds import BLOCK_KINDS, FLOAT, Q4GSW
from py_runtime.program.writer import ProgramWriter, Ref


class WrittenOps:
    """A program that is being written, and the calls and constants that its parts share."""

    tokens: Ref  # [1, S]
    length: Ref  # S
    start: Ref  # the position of the first of them

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], name: str) -> None:
        self.config = config
        self.kinds = kinds
        self.shapes = expected_shapes(config)
        self.writer = ProgramWriter(name)
        self.constants: dict[str, Ref] = {}
        self.rows = (1, config.max_chunk)  # what the tokens of a call are, before their columns

    def _looked_up(self, path: str, dims: Dims, name: str = "") -> Ref:
        """Look up the tokens' rows of a table."""
        kind, parts = self.kinds[f"{path}.weight"], self._parts(path)
        if kind.name == FLOAT:
            nothing = (-1, False, False)  # no padding token; the rest is of training
            given = (*parts, self.tokens, *nothing)
            return self._computed("aten.embedding.default", dims, *given, name=name)
        embedding = BLOCK_KINDS[kind.name].embedding
        return self._computed(embedding, dims, *parts, self.tokens, name=name)

    def _linear(self, path: str, x: Ref, rows: Dims) -> Ref:  # [*rows, columns] → [*rows, N]
        kind = self.kinds[f"{path}.weight"]
        out = self._tensor((*rows, self._shape(path)[0]))
        parts: list[object] = [*self._parts(path)]
        if kind.name == FLOAT:
            name = op_names.LINEAR
        elif kind.name == Q4GSW:
            name, parts = op_names.LINEAR_Q4GSW, [*parts, kind.group_size]
        else:
            name = BLOCK_KINDS[kind.name].linear
        self.writer.op(name, x, *parts, self._bias(path), out)
        return out

    def _norm(self, path: str, x: Ref, dims: Dims, name: str = "", eps: float | None = None) -> Ref:
        weight = self._constant(f"{path}.weight", dims[-1:])
        how = (weight, self.config.norms.eps if eps is None else eps)
        return self._computed(op_names.RMS_NORM, dims, x, *how, name=name)

    def _heads(self, x: Ref, dims: Dims) -> Ref:
        """View the same elements in other dims, at the call's length."""
        out = self._tensor(dims)
        self.writer.op("aten.view.default", x, [1, self.length, *dims[2:]], out)
        return out

    def _add(self, x: Ref, y: Ref, name: str = "") -> Ref:
        c = self.config
        return self._computed(op_names.ADD, (*self.rows, c.width), x, y, 1, name=name)

    def _computed(self, op: str, dims: Dims, *args: object, name: str = "") -> Ref:
        out = self._tensor(dims, name)
        self.writer.op(op, *args, out)
        return out

    # Values ------------------------------------------------------------------------------------

    def _shape(self, path: str) -> tuple[int, int, bool]:
        """Return rows, columns, and whether there is a bias."""
        rows, columns = self.shapes[f"{path}.weight"]
        return rows, columns, f"{path}.bias" in self.shapes

    def _bias(self, path: str) -> Ref | None:
        count, _, has_bias = self._shape(path)
        rows = bias_rows(self.kinds[f"{path}.weight"], count)
        return self._constant(f"{path}.bias", (rows,)) if has_bias else None

    def _parts(self, path: str) -> list[Ref]:
        rows, columns, _ = self._shape(path)
        kind = self.kinds[f"{path}.weight"]
        return [
            self._constant(f"{path}.{part}", dims, dtype)
            for part, (dims, dtype) in weight_parts(kind, rows, columns).items()
        ]

    def _constant(self, name: str, dims: Dims, dtype: DType = F32) -> Ref:
        if name not in self.constants:
            self.constants[name] = self.writer.declare_constant(name, dims, dtype)
        return self.constants[name]

    def _tensor(self, dims: Dims, name: str = "") -> Ref:
        return self.writer.tensor(dims, F32, name)
