"""Linear layers, x weightᵀ + bias: f32, 4-bit and 8-bit weights behind the same two kernels."""

from dataclasses import dataclass

from py_runtime.dtypes import F16, F32, U8
from py_runtime.live import LiveTensor
from py_runtime.ops.registry import Op, register
from py_runtime.program import TensorValue
from py_runtime.quantise import BLOCK, Q4_0, Q4_1, Q8_0, BlockKind, q4gsw_row_bytes
from py_runtime.shapes import ceil_div, numel

GEMV_ROWS = 64  # outputs a workgroup of shaders/linear_gemv.wgsl computes
GEMM_TILES, GEMM_TILE = 16, 8  # tiles a workgroup of shaders/linear_gemm.wgsl computes, their side
MATMUL_TILES, MATMUL_TILE = 32, 4  # the same of shaders/matmul.wgsl


@dataclass(frozen=True)
class Scales:
    """Where a kernel finds the scale of a row and a group."""

    octets_per_group: int
    row_stride: int
    group_stride: int


class Linear(Op):
    """Two routes over one weight kind: a matrix-vector kernel for one row of x, else tiles."""

    def take_ends(self, rows: int, columns: int) -> None:
        """The arguments every linear has; the weight is [rows, columns]."""
        self.rows, self.columns = rows, columns
        self.x = self.tensor("x", F32)  # [..., columns]
        self.out = self.tensor("out", F32)  # [..., rows]
        self.bias = self.tensor("bias", F32, rank=1) if self.has("bias") else None
        self.require(
            self.x.rank >= 1 and self.x.max_dims[-1] == columns,
            f"x of {list(self.x.max_dims)} does not fit weights of {columns} columns",
        )
        self.require(
            self.out.rank == self.x.rank and self.out.max_dims[-1] == rows,
            f"out is {list(self.out.max_dims)}; it must be x's dims with {rows} at the end",
        )
        self.require(
            self.bias is None or self.bias.max_dims[0] >= rows,
            f"the bias is shorter than the {rows} rows of the weight",
        )

    def declare(
        self,
        *kind: str,
        weights: dict[str, LiveTensor],
        scales: Scales,
        scale_per_octet: bool = False,
    ) -> None:
        """Both routes; `kind` are the shader files of the weight kind."""
        self.weights, self.scales = weights, scales
        bind = {"x": self.x, "out": self.out, "bias": self.bias or self.x, **weights}
        shared = ("linear_io", "dequantise", *kind)
        self.gemv = self.launch(
            *shared, "linear_gemv", bind=bind, constants={"SCALE_PER_OCTET": float(scale_per_octet)}
        )
        self.gemm = self.launch(*shared, "linear_gemm", bind=bind)

    def check_bias(self, rows: int) -> None:
        fits = self.bias is None or self.bias.dims[0] >= rows
        self.require_live(fits, f"the bias is shorter than the {rows} rows of the weight")

    def live(self) -> None:
        *lead, width = self.x.dims
        self.require_live(width == self.columns, f"rows of x are {width}, not {self.columns}")
        for weight in self.weights.values():
            self.require_live(weight.dims == weight.max_dims, f"{weight.label} cannot be resized")
        self.check_bias(self.rows)
        self.out.resize((*lead, self.rows))
        count = numel(lead)
        if count == 1:
            self.gemm.skip()
            route, groups = self.gemv, ceil_div(self.rows, GEMV_ROWS)
        else:
            self.gemv.skip()
            tiles = ceil_div(self.rows, GEMM_TILE) * ceil_div(count, GEMM_TILE)
            route, groups = self.gemm, ceil_div(tiles, GEMM_TILES)
        route(
            groups,
            count=count,
            rows=self.rows,
            quads=self.columns // 4,
            octets=ceil_div(self.columns, 8),
            octets_per_group=self.scales.octets_per_group,
            row_stride=self.scales.row_stride,
            group_stride=self.scales.group_stride,
            has_bias=self.bias is not None,
        )


@register("et_vk.linear_q4gsw.default", args="x weight scales group_size bias out")
class LinearQ4gsw(Linear):
    """weight: u8 [N, ceil(K / 8) * 4]; scales: f32 [groups, N or more]."""

    def build(self) -> None:
        weight = self.tensor("weight", U8, rank=2)
        scales = self.tensor("scales", F32, rank=2)
        group_size = self.integer("group_size")
        rows, row_bytes = weight.max_dims
        columns = (0, *self.tensor("x", F32).max_dims)[-1]
        self.take_ends(rows, columns)
        self.require(columns % 4 == 0, f"rows of {columns} columns; K must be a multiple of 4")
        self.require(
            row_bytes == q4gsw_row_bytes(columns),
            f"weight rows of {row_bytes} bytes; {columns} columns take {q4gsw_row_bytes(columns)}",
        )
        self.require(
            group_size >= columns or (group_size > 0 and group_size % 8 == 0),
            f"groups of {group_size}; they must be a multiple of 8, or all {columns} columns",
        )
        groups, padded_rows = scales.max_dims
        self.require(
            groups == ceil_div(columns, group_size) and padded_rows >= rows,
            f"scales are {list(scales.max_dims)}; groups of {group_size} in a weight of "
            f"[{rows}, {columns}] need [{ceil_div(columns, group_size)}, {rows} or more]",
        )
        self.declare(
            "weight_q4gsw",
            "linear_bias",
            weights={"weight": weight, "scales": scales},
            scales=Scales(ceil_div(group_size, 8), 1, padded_rows),
            scale_per_octet=groups > 1 and group_size % BLOCK != 0,
        )


class BlockLinear(Linear):
    kind: BlockKind

    def build(self) -> None:
        weight = self.tensor("weight", self.kind.dtype, rank=2)
        scales = self.tensor("scales", F16)
        rows, columns = weight.max_dims[0], weight.max_dims[1] * self.kind.columns_per_element
        self.require(
            columns % BLOCK == 0, f"rows of {columns} columns; K must be a multiple of {BLOCK}"
        )
        self.require(
            scales.max_dims == self.kind.scale_dims(rows, columns),
            f"scales are {list(scales.max_dims)}; a weight of [{rows}, {columns}] needs "
            f"{list(self.kind.scale_dims(rows, columns))}",
        )
        self.take_ends(rows, columns)
        self.declare(
            f"weight_{self.kind.name}",
            "linear_bias",
            weights={"weight": weight, "scales": scales},
            scales=Scales(BLOCK // 8, columns // BLOCK, 1),
        )


@register("inpage.linear_q4_0.default", args="x weight scales bias out")
class LinearQ4_0(BlockLinear):
    kind = Q4_0


@register("inpage.linear_q4_1.default", args="x weight scales bias out")
class LinearQ4_1(BlockLinear):
    kind = Q4_1


@register("inpage.linear_q8_0.default", args="x weight scales bias out")
class LinearQ8_0(BlockLinear):
    kind = Q8_0


@register("aten.linear.default", args="x weight bias out")
class LinearF32(Linear):
    """Weights whose rows are no whole vectors, or that are computed, go to the general kernel."""

    def build(self) -> None:
        self.weight = self.tensor("weight", F32, rank=2)  # [N, K]
        self.take_ends(*self.weight.max_dims)
        value = self.builder.program.values[self.weight.id]
        fixed = isinstance(value, TensorValue) and value.constant is not None
        self.vectorised = fixed and self.columns % 4 == 0
        if self.vectorised:
            self.declare("weight_f32", weights={"weight": self.weight}, scales=Scales(1, 0, 0))
        else:
            bias = self.bias or self.x
            self.matmul = self.launch(
                "matmul", bind={"a": self.x, "b": self.weight, "bias": bias, "out": self.out}
            )

    def live(self) -> None:
        if self.vectorised:
            super().live()
            return
        *lead, depth = self.x.dims
        rows, columns = self.weight.dims
        self.require_live(depth == columns, f"rows of x are {depth}, of the weight {columns}")
        self.check_bias(rows)
        self.out.resize((*lead, rows))
        count = numel(lead)
        tiles = ceil_div(count, MATMUL_TILE) * ceil_div(rows, MATMUL_TILE)
        self.matmul(
            ceil_div(tiles, MATMUL_TILES),
            batches=1,
            lines=count,
            columns=rows,
            depth=depth,
            b_depth_stride=1,
            b_column_stride=depth,
            bias_line_stride=0,
            bias_column_stride=1,
            has_bias=self.bias is not None,
            alpha=1.0,
            beta=1.0,
        )
