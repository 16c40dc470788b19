"""The kernels of linears, and of what is fused with them.

A kernel is joined from files that know one thing each: how the weight is stored (weight_*.wgsl),
how x is shared out among invocations (linear_gemv*.wgsl, linear_gemm*.wgsl), and what becomes of
the sums (linear_rows.wgsl, linear_swiglu.wgsl, linear_qkv.wgsl: a "finish").
"""

from collections.abc import Mapping
from dataclasses import dataclass

from py_runtime.launch import Bindable
from py_runtime.live import LiveTensor
from py_runtime.matrices import Matrix
from py_runtime.norms import RmsNormKernel
from py_runtime.ops.registry import Op
from py_runtime.shapes import ceil_div, numel
from py_runtime.target import Target

GEMV_PAIRS = 32  # pairs of rows a workgroup of shaders/linear_gemv.wgsl computes
SHARING_LANES = 4  # shaders/linear_quads.wgsl needs as many


@dataclass(frozen=True)
class Tiling:
    """How a matrix product is shared out; the figures are those of the shaders."""

    shaders: tuple[str, ...]
    tiles: int  # that a workgroup computes
    lines: int  # of a tile
    pairs: int
    before: tuple[str, ...] = ()


ALONE = Tiling(("linear_lines", "linear_lines_alone", "linear_gemm"), tiles=4, lines=8, pairs=16)
SHARED = Tiling(
    ("linear_lines", "linear_quads", "linear_lines_shared", "linear_gemm"),
    tiles=4,
    lines=8,
    pairs=16,
    before=("subgroups",),
)
WIDE = Tiling(("linear_gemm_wide",), tiles=1, lines=64, pairs=32)


def tiling_for(target: Target) -> Tiling:
    if target.wide:
        return WIDE
    return SHARED if target.lanes >= SHARING_LANES else ALONE


@dataclass(frozen=True)
class Finish:
    """What becomes of the sums: shader files, and what they bind beside x and the weight."""

    shaders: tuple[str, ...]
    bind: Mapping[str, Bindable]
    pairs: int  # of rows, as the shader pairs them
    fields: Mapping[str, object]  # its own parameters


def into_rows(
    x: LiveTensor,
    rows: int,
    out: Bindable,
    bias: Bindable | None = None,
    residual: LiveTensor | None = None,
) -> Finish:
    """out: [lines, rows]; x stands in for what there is not."""
    bind = {"out": out, "bias": bias or x, "residual": residual or x}
    has = {"has_bias": bias is not None, "has_residual": residual is not None}
    return Finish(("linear_rows",), bind, ceil_div(rows, 2), {"rows": rows, **has})


@dataclass(frozen=True)
class Norm:
    """x is normalised first: weight [columns]."""

    weight: LiveTensor
    eps: float


class LinearKernels:
    """One kernel for one line of x, others for many; x may be normalised on the way.

    `many` is what becomes of the sums of many lines, where that is not the same as of one.
    """

    def __init__(
        self,
        op: Op,
        x: LiveTensor,
        matrix: Matrix,
        finish: Finish,
        norm: Norm | None = None,
        many: Finish | None = None,
    ) -> None:
        self.matrix = matrix
        self.shared = {**matrix.fields, "eps": norm.eps if norm is not None else 0.0}
        most_lines = numel(x.max_dims[:-1])
        self.one = OneLine(op, x, matrix, finish, norm)
        self.many: ManyLines | None = None
        if most_lines > 1:
            self.many = ManyLines(op, x, most_lines, matrix, many or finish, norm)

    def __call__(self, lines: int) -> None:
        for tensor in self.matrix.tensors:
            self.one.op.require_live(
                tensor.dims == tensor.max_dims, f"{tensor.label} cannot be resized"
            )
        if lines == 1 or self.many is None:
            self.one(self.shared)
            if self.many is not None:
                self.many.skip()
        else:
            self.one.skip()
            self.many(lines, self.shared)


class OneLine:
    """A matrix-vector product; the norm of x costs no kernel of its own."""

    def __init__(
        self, op: Op, x: LiveTensor, matrix: Matrix, finish: Finish, norm: Norm | None
    ) -> None:
        self.op, self.finish = op, finish
        target = op.builder.target
        bind = {**finish.bind, **matrix.bind, "x": x, "norm": norm.weight if norm else x}
        shared = (*finish.shaders, "linear_io", *matrix.shaders, "linear_norm")
        constants = {
            "NORMED": float(norm is not None),
            "SCALE_PER_OCTET": float(matrix.scale_per_octet),
            "WHOLE_LINES": float(matrix.columns % (16 if target.wide else 32) == 0),
        }
        if target.wide:
            shape = WideShape.of(matrix, target)
            self.group_pairs = shape.pairs
            constants |= {
                "WORKGROUP": shape.workgroup,
                "TWO_PAIRS": float(shape.pairs == 2),
                "BY_BYTES": float(shape.by_bytes),
            }
            shaders = ("subgroups", *shared, "linear_gemv_wide")
        elif target.lanes >= SHARING_LANES:
            self.group_pairs = GEMV_PAIRS
            quads = ("linear_block", "linear_quads", "linear_block_shared")
            shaders = ("subgroups", *shared, *quads, "linear_gemv")
        else:
            self.group_pairs = GEMV_PAIRS
            shaders = (*shared, "linear_block", "linear_block_alone", "linear_gemv")
        self.gemv = op.launch(*shaders, bind=bind, constants=constants)

    def __call__(self, shared: Mapping[str, object]) -> None:
        pairs = self.finish.pairs
        groups = ceil_div(pairs, self.group_pairs)
        self.gemv(groups, count=1, pairs=pairs, **self.finish.fields, **shared)

    def skip(self) -> None:
        self.gemv.skip()


# Measured on an H200: dependent dispatches over 4-bit weights that no cache holds, in µs; an empty
# one takes 2.8. Two pairs of rows in a workgroup of 32 or of 128 invocations: 28672 rows of 4096
# columns 31.9 (2.3 TB/s) or 35.4, 3072 of 576 4.0 or 4.1; but 4096 of 14336 28.7 or 21.6, 4096 of
# 4096 10.4 or 8.8. Few short rows want more workgroups: 576 rows of 1536 take 3.6 with one pair in
# each, 4.1 with two. Values by bytes gain 8 % with 32 invocations and lose 12 % with 128. The norm
# on the way costs 10 for 28672 rows of 4096, 3 for 6144 of them, 0.5 for 3072 of 576; a kernel of
# its own took 14 there.
LONG_ROWS = 2048  # columns
MANY_ROWS = 4  # for each column


@dataclass(frozen=True)
class WideShape:
    """Of a workgroup of shaders/linear_gemv_wide.wgsl."""

    pairs: int
    workgroup: int
    by_bytes: bool

    @classmethod
    def of(cls, matrix: Matrix, target: Target) -> "WideShape":
        if matrix.rows >= MANY_ROWS * matrix.columns:
            return cls(2, max(32, target.lanes), by_bytes=True)
        return cls(2 if matrix.columns >= LONG_ROWS else 1, 128, by_bytes=False)


class ManyLines:
    """A matrix product in tiles, after the norm of x."""

    def __init__(
        self,
        op: Op,
        x: LiveTensor,
        most_lines: int,
        matrix: Matrix,
        finish: Finish,
        norm: Norm | None,
    ) -> None:
        self.columns, self.finish, self.norm = matrix.columns, finish, norm
        normed: Bindable = x
        if norm is not None:
            normed = op.scratch("normalised x", most_lines * matrix.columns * 4)
            self.normalise = RmsNormKernel(op, x, norm.weight, normed)
        self.tiling = tiling_for(op.builder.target)
        self.gemm = op.launch(
            *self.tiling.before,
            *finish.shaders,
            "linear_io",
            *matrix.shaders,
            *self.tiling.shaders,
            bind={**finish.bind, **matrix.bind, "x": normed},
        )

    def __call__(self, lines: int, shared: Mapping[str, object]) -> None:
        if self.norm is not None:
            self.normalise(lines, self.columns, self.norm.eps)
        pairs = self.finish.pairs
        tiles = ceil_div(pairs, self.tiling.pairs) * ceil_div(lines, self.tiling.lines)
        groups = ceil_div(tiles, self.tiling.tiles)
        self.gemm(groups, count=lines, pairs=pairs, **self.finish.fields, **shared)

    def skip(self) -> None:
        if self.norm is not None:
            self.normalise.skip()
        self.gemm.skip()
