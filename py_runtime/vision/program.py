"""A vision tower's program: the patches of a tile go in, rows for the decoder come out.

patches: f32 [1, N, 3 · P · P], pixels of a patch by channel, line and column → rows: f32
[1, N / factor², out].
"""

from collections.abc import Mapping

from py_runtime.base.dtypes import F32, DType
from py_runtime.base.shapes import Dims
from py_runtime.decoder.tensors import WeightKind, weight_parts
from py_runtime.program import Program, op_names
from py_runtime.program.weight_kinds import BLOCK_KINDS, FLOAT
from py_runtime.program.writer import ProgramWriter, Ref
from py_runtime.vision.config import GELU, TowerConfig
from py_runtime.vision.tensors import (
    DOWN,
    FIRST_NORM,
    KEYS,
    LAST_NORM,
    MIXED,
    PATCHES,
    POSITIONS,
    PROJECTOR,
    QUERIES,
    SECOND_NORM,
    UP,
    VALUES,
    expected_shapes,
)


def write_tower(config: TowerConfig, kinds: Mapping[str, WeightKind], name: str) -> Program:
    """Write the program; `kinds` has the kind of every matrix."""
    return _Tower(config, kinds, name).write()


class _Tower:
    def __init__(self, config: TowerConfig, kinds: Mapping[str, WeightKind], name: str) -> None:
        self.config = config
        self.kinds = kinds
        self.shapes = expected_shapes(config)
        self.writer = ProgramWriter(name)
        self.wide = (1, config.patches, config.width)

    def write(self) -> Program:
        c, writer = self.config, self.writer
        pixels = writer.input("patches", (1, c.patches, c.patch_columns), F32)
        x = self._linear(PATCHES, pixels)
        x = self._add(x, self.writer.declare_constant(POSITIONS, self.shapes[POSITIONS], F32))
        for number in range(c.layers):
            x = self._layer(f"layers.{number}", x)
        shuffled = self._shuffled(self._norm(LAST_NORM, x))
        writer.output(self._linear(PROJECTOR, shuffled))
        return writer.program()

    def _shuffled(self, x: Ref) -> Ref:
        """Put factor × factor neighbours into one row, line by line, then beside each other."""
        c = self.config
        grid, few, joined = c.grid, c.grid // c.factor, c.width * c.factor
        x = self._viewed(x, (1, grid, few, joined))  # neighbours of a line
        x = self._computed("aten.permute_copy.default", (1, few, grid, joined), x, [0, 2, 1, 3])
        x = self._viewed(x, (1, few, few, joined * c.factor))  # and of a column
        dims = (1, few, few, joined * c.factor)
        x = self._computed("aten.permute_copy.default", dims, x, [0, 2, 1, 3])
        return self._viewed(x, (1, c.rows, joined * c.factor))

    def _layer(self, path: str, x: Ref) -> Ref:
        x = self._add(x, self._attention(path, self._norm(f"{path}.{FIRST_NORM}", x)))
        ahead = self._norm(f"{path}.{SECOND_NORM}", x)
        up = self._linear(f"{path}.{UP}", ahead)
        kind = "none" if self.config.activation == GELU else "tanh"
        up = self._computed(op_names.GELU, (*self.wide[:2], self.config.hidden), up, kind)
        return self._add(x, self._linear(f"{path}.{DOWN}", up))

    def _attention(self, path: str, x: Ref) -> Ref:
        """Write attention in which each patch sees all of its tile."""
        c = self.config
        split = (1, c.patches, c.heads, c.head_dim)
        by_heads = (1, c.heads, c.patches, c.head_dim)
        q, k, v = (
            self._swapped(self._viewed(self._linear(f"{path}.{name}", x), split), by_heads)
            for name in (QUERIES, KEYS, VALUES)
        )
        mixed = self._computed("et_vk.sdpa.default", by_heads, q, k, v, None, c.head_dim**-0.5)
        return self._linear(f"{path}.{MIXED}", self._viewed(self._swapped(mixed, split), self.wide))

    # Ops ---------------------------------------------------------------------------------------

    def _linear(self, path: str, x: Ref) -> Ref:
        name = f"{path}.weight"
        kind, (rows, columns) = self.kinds[name], self.shapes[name]
        parts = [
            self._constant(f"{path}.{part}", dims, dtype)
            for part, (dims, dtype) in weight_parts(kind, rows, columns).items()
        ]
        bias = self._constant(f"{path}.bias", (rows,)) if f"{path}.bias" in self.shapes else None
        op = op_names.LINEAR if kind.name == FLOAT else BLOCK_KINDS[kind.name].linear
        count = self.config.rows if path == PROJECTOR else self.config.patches
        return self._computed(op, (1, count, rows), x, *parts, bias)

    def _norm(self, path: str, x: Ref) -> Ref:
        width = self.config.width
        given = [self._constant(f"{path}.{part}", (width,)) for part in ("weight", "bias")]
        out = self.writer.tensor(self.wide, F32)
        stats = [self.writer.tensor((*self.wide[:2], 1), F32) for _ in range(2)]
        how = ([width], *given, self.config.eps)
        self.writer.op("aten.native_layer_norm.default", x, *how, [out, *stats])
        return out

    def _add(self, x: Ref, y: Ref) -> Ref:
        return self._computed(op_names.ADD, self.wide, x, y, 1)

    def _viewed(self, x: Ref, dims: Dims) -> Ref:
        return self._computed("aten.view.default", dims, x, list(dims))

    def _swapped(self, x: Ref, dims: Dims) -> Ref:
        """Let patches and heads change places."""
        return self._computed("aten.permute_copy.default", dims, x, [0, 2, 1, 3])

    def _computed(self, op: str, dims: Dims, *args: object) -> Ref:
        out = self.writer.tensor(dims, F32)
        self.writer.op(op, *args, out)
        return out

    def _constant(self, name: str, dims: Dims, dtype: DType = F32) -> Ref:
        return self.writer.declare_constant(name, dims, dtype)
