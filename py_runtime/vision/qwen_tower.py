"""The program of Qwen's towers: the patches of an image of any size become rows.

patches: f32 [1, N, pixels], those of a row side by side; cos, sin: f32 [N, head_dim], by lines and
columns. With windows, visible: bool [1, 1, 1, N] and in_windows: bool [windows, 1, 1, patches],
false for those that fill windows up. With a table of positions, corners: i64 [N, 4] and shares: f32
[N, 1, 4] → rows: f32 [1, N / unit, out], and as many for each layer with rows of its own.
"""

from collections.abc import Mapping

from py_runtime.base.dtypes import BOOL, F32, I64
from py_runtime.base.shapes import Dims
from py_runtime.decoder.block_ops import BlockOps
from py_runtime.decoder.tensors import WeightKind
from py_runtime.program import Program, op_names
from py_runtime.program.writer import Ref
from py_runtime.vision.qwen_names import (
    DEEP,
    DOWN,
    FIRST_NORM,
    GATE,
    LAST_NORM,
    MERGED,
    MIXED,
    PATCHES,
    POSITIONS,
    PROJECTED,
    QKV,
    SECOND_FRAME,
    SECOND_NORM,
    UP,
)
from py_runtime.vision.qwen_vl import CORNERS, QwenImages


class QwenVl(QwenImages):
    """Qwen2.5-VL or Qwen3-VL."""

    def write(self, kinds: Mapping[str, WeightKind], name: str) -> Program:
        return _Tower(self, kinds, name).write()


class _Tower(BlockOps):
    def __init__(self, sight: QwenVl, kinds: Mapping[str, WeightKind], name: str) -> None:
        super().__init__(kinds, sight.shapes(), sight.eps, name)
        self.sight = sight
        self.most = sight.most_patches
        self.rows = (1, self.most)
        self.wide = (*self.rows, sight.width)

    def write(self) -> Program:
        c, writer = self.sight, self.writer
        pixels = writer.input("patches", (*self.rows, c.pixel_columns), F32, dynamic=(1,))
        turning = (self.most, c.head_dim)
        self.turning = [writer.input(name, turning, F32, dynamic=(0,)) for name in ("cos", "sin")]
        self.count, self.merged = writer.symint("count"), writer.symint("merged")
        writer.op("sym_size.int", pixels, 1, self.count)
        writer.op("floordiv", self.count, c.unit, self.merged)
        self.visible = self._windows() if c.window else None
        x = self._embedded(pixels)
        found = []
        for number in range(c.layers):
            x = self._layer(number, x)
            if number in c.deep:
                found.append(self._deep_rows(number, x))
        writer.output(self._merged(self._joined(self._norm(LAST_NORM, x)), MERGED, PROJECTED))
        writer.output(*found)
        return writer.program()

    def _windows(self) -> Ref:
        """Take what windows hold; return what is there at all."""
        c, writer = self.sight, self.writer
        visible = writer.input("visible", (1, 1, 1, self.most), BOOL, dynamic=(3,))
        most = self.most // c.in_window
        self.in_windows = writer.input("in_windows", (most, 1, 1, c.in_window), BOOL, dynamic=(0,))
        self.windows = writer.symint("windows")
        writer.op("sym_size.int", self.in_windows, 0, self.windows)
        return visible

    def _embedded(self, pixels: Ref) -> Ref:
        c = self.sight
        x = self._linear(PATCHES, pixels, self.rows)
        if not c.in_one:
            path = SECOND_FRAME.removesuffix(".weight")
            x = self._add(x, self._linear(path, pixels, self.rows), self.wide)
        if not c.is_new:
            return x
        corners = self.writer.input("corners", (self.most, CORNERS), I64, dynamic=(0,))
        shares = self.writer.input("shares", (self.most, 1, CORNERS), F32, dynamic=(0,))
        table = self._constant(POSITIONS, self.shapes[POSITIONS])
        dims = (self.most, CORNERS, c.width)
        rows = self._computed("aten.embedding.default", dims, table, corners, -1, False, False)
        mixed = self._computed("aten.bmm.default", (self.most, 1, c.width), shares, rows)
        return self._add(x, self._viewed(mixed, self.wide, (1, self.count)), self.wide)

    def _layer(self, number: int, x: Ref) -> Ref:
        path = f"layers.{number}"
        x = self._add(x, self._attention(number, self._norm(f"{path}.{FIRST_NORM}", x)), self.wide)
        return self._add(x, self._mlp(path, self._norm(f"{path}.{SECOND_NORM}", x)), self.wide)

    def _norm(self, path: str, x: Ref) -> Ref:
        if self.sight.is_new:
            return self._layer_norm(path, x, self.wide)
        weight = self._constant(f"{path}.weight", self.wide[-1:])
        return self._computed(op_names.RMS_NORM, self.wide, x, weight, self.eps)

    def _mlp(self, path: str, x: Ref) -> Ref:
        dims = (*self.rows, self.sight.hidden)
        up = self._linear(f"{path}.{UP}", x, self.rows)
        if self.sight.is_new:
            return self._linear(f"{path}.{DOWN}", self._gelu(up, dims, is_exact=False), self.rows)
        gate = self._linear(f"{path}.{GATE}", x, self.rows)
        gate = self._computed(op_names.SILU, dims, gate)
        product = self._computed(op_names.MUL, dims, gate, up)
        return self._linear(f"{path}.{DOWN}", product, self.rows)

    def _attention(self, number: int, x: Ref) -> Ref:
        """Write attention in which a patch sees its window, or the whole image."""
        c, path = self.sight, f"layers.{number}"
        is_whole = not c.window or number in c.unbound
        split = (*self.rows, c.heads, c.head_dim)
        q, k, v = (
            self._viewed(self._linear(f"{path}.{name}", x, self.rows), split, (1, self.count))
            for name in QKV
        )
        turned = [self.writer.tensor(split, F32) for _ in range(2)]
        self.writer.op("et_vk.apply_rotary_emb_hf.default", q, k, *self.turning, 0, turned)
        heads = [*turned, v]
        dims: Dims = split
        mask = self.visible
        if not is_whole:
            dims = (self.most // c.in_window, c.in_window, c.heads, c.head_dim)
            heads = [self._viewed(each, dims, (self.windows,)) for each in heads]
            mask = self.in_windows
        by_heads = (dims[0], c.heads, dims[1], c.head_dim)
        swapped = [self._swapped(each, by_heads) for each in heads]
        how = (mask, c.head_dim**-0.5)
        mixed = self._computed("et_vk.sdpa.default", by_heads, *swapped, *how)
        flat = self._viewed(self._swapped(mixed, dims), self.wide, (1, self.count))
        return self._linear(f"{path}.{MIXED}", flat, self.rows)

    # Rows --------------------------------------------------------------------------------------

    def _joined(self, x: Ref) -> Ref:
        """Put the patches of a row beside each other."""
        c = self.sight
        dims = (1, self.most // c.unit, c.width * c.unit)
        return self._viewed(x, dims, (1, self.merged))

    def _merged(self, x: Ref, first: str, second: str) -> Ref:
        c = self.sight
        rows = (1, self.most // c.unit)
        up = self._linear(first, x, rows)
        up = self._gelu(up, (*rows, c.width * c.unit), is_exact=True)
        return self._linear(second, up, rows)

    def _deep_rows(self, number: int, x: Ref) -> Ref:
        c = self.sight
        norm, first, second = (f"{DEEP}.{number}.{part}" for part in ("norm", "fc1", "fc2"))
        dims = (1, self.most // c.unit, c.width * c.unit)
        return self._merged(self._layer_norm(norm, self._joined(x), dims), first, second)
