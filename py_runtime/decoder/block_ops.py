"""The ops that text encoders and vision towers are written with, whose products have biases."""

from collections.abc import Mapping, Sequence

from py_runtime.base.dtypes import F32, DType
from py_runtime.base.shapes import Dims
from py_runtime.decoder.tensors import WeightKind, weight_parts
from py_runtime.program import op_names
from py_runtime.program.weight_kinds import BLOCK_KINDS, FLOAT
from py_runtime.program.writer import ProgramWriter, Ref

HEADS_AND_ROWS = [0, 2, 1, 3]  # which change places


class BlockOps:
    """A program that is being written, and the calls that its parts share."""

    def __init__(
        self, kinds: Mapping[str, WeightKind], shapes: Mapping[str, Dims], eps: float, name: str
    ) -> None:
        self.kinds = kinds
        self.shapes = shapes
        self.eps = eps  # of all norms
        self.writer = ProgramWriter(name)

    def _linear(self, path: str, x: Ref, rows: Dims) -> Ref:  # [*rows, columns] → [*rows, N]
        name = f"{path}.weight"
        kind, count = self.kinds[name], self.shapes[name][0]
        bias = self._constant(f"{path}.bias", (count,)) if f"{path}.bias" in self.shapes else None
        op = op_names.LINEAR if kind.name == FLOAT else BLOCK_KINDS[kind.name].linear
        return self._computed(op, (*rows, count), x, *self._parts(name), bias)

    def _layer_norm(
        self,
        path: str,
        x: Ref,
        dims: Dims,
        name: str = "",
        eps: float | None = None,
        has_bias: bool = True,
    ) -> Ref:
        weight = self._constant(f"{path}.weight", dims[-1:])
        given = (weight, self._constant(f"{path}.bias", dims[-1:]) if has_bias else None)
        out = self.writer.tensor(dims, F32, name)
        stats = [self.writer.tensor((*dims[:-1], 1), F32) for _ in range(2)]
        how = ([dims[-1]], *given, self.eps if eps is None else eps)
        self.writer.op("aten.native_layer_norm.default", x, *how, [out, *stats])
        return out

    def _add(self, x: Ref, y: Ref, dims: Dims) -> Ref:
        return self._computed(op_names.ADD, dims, x, y, 1)

    def _gelu(self, x: Ref, dims: Dims, is_exact: bool) -> Ref:
        return self._computed(op_names.GELU, dims, x, "none" if is_exact else "tanh")

    def _viewed(self, x: Ref, dims: Dims, size: Sequence[Ref | int] = ()) -> Ref:
        """View the same elements in other dims; `size` has those that are live by their names."""
        return self._computed("aten.view.default", dims, x, [*size, *dims[len(size) :]])

    def _swapped(self, x: Ref, dims: Dims) -> Ref:
        """Let rows and heads change places."""
        return self._computed("aten.permute_copy.default", dims, x, HEADS_AND_ROWS)

    def _computed(self, op: str, dims: Dims, *args: object) -> Ref:
        out = self.writer.tensor(dims, F32)
        self.writer.op(op, *args, out)
        return out

    def _parts(self, name: str) -> list[Ref]:
        """Return the constants of a matrix."""
        rows, columns = self.shapes[name]
        owner = name.removesuffix(".weight")
        return [
            self._constant(f"{owner}.{part}", dims, dtype)
            for part, (dims, dtype) in weight_parts(self.kinds[name], rows, columns).items()
        ]

    def _constant(self, name: str, dims: Dims, dtype: DType = F32) -> Ref:
        return self.writer.declare_constant(name, dims, dtype)
