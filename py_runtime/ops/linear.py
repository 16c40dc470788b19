"""Linear layers, x weightᵀ + bias, with weights of every kind."""

from py_runtime.base.dtypes import F32, I8, I32, U8, DType
from py_runtime.base.shapes import ceil_div, numel
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.epilogues import make_residual_epilogue
from py_runtime.ops.kernels.linears import LinearKernels
from py_runtime.ops.kernels.matrices import Weight, matrices_of
from py_runtime.ops.registry import Op, register
from py_runtime.program import as_constant
from py_runtime.program.weight_kinds import BLOCK_KINDS, FLOAT, Q4GSW

MATMUL_TILE = figures_of("linear/matmul")["TILE"]


class Linear(Op):
    """A linear layer; `build` of a subclass takes the weight."""

    def take_common_arguments(self, rows: int, columns: int) -> None:
        """Take the arguments that every linear has; the weight is [rows, columns]."""
        self.rows, self.columns = rows, columns
        self.x = self.tensor("x", F32)  # [..., columns]
        self.out = self.tensor("out", F32)  # [..., rows]
        self.bias = self.take_bias()
        self.require(
            self.x.rank >= 1 and self.x.max_dims[-1] == columns,
            f"x of {list(self.x.max_dims)} does not fit weights of {columns} columns",
        )
        self.require(
            self.out.rank == self.x.rank and self.out.max_dims[-1] == rows,
            f"out is {list(self.out.max_dims)}; it must be x's dims with {rows} at the end",
        )
        self.require(
            self.bias is None or (0, *self.bias.max_dims)[-1] >= rows,
            f"the bias is shorter than the {rows} rows of the weight",
        )

    def columns_of_x(self) -> int:
        """Return the columns of x, for weights that are padded; 0 if x has no dims."""
        return (0, *self.tensor("x", F32).max_dims)[-1]

    def take_bias(self) -> LiveTensor | None:
        """Take the bias: [rows or more], or one for each token: [..., rows]."""
        return self.tensor("bias", F32) if self.has("bias") else None

    def declare(self, weight: Weight, source: Bindable | None = None) -> None:
        """Declare the kernels; they read `source` where that is not x itself."""
        matrices = matrices_of(self, [weight], self.columns)
        epilogue = make_residual_epilogue(self.x, self.rows, self.out, self.bias)
        self.kernels = LinearKernels(self, self.x, matrices, epilogue, source=source)

    def check_bias(self, rows: int) -> None:
        if self.bias is None:
            return
        *lead, count = self.bias.dims
        self.require_live(count >= rows, f"the bias is shorter than the {rows} rows of the weight")
        self.require_live(
            not lead or (*lead, rows) == (*self.x.dims[:-1], count),
            f"a bias of {list(self.bias.dims)} does not fit x of {list(self.x.dims)}",
        )

    def live(self) -> None:
        *lead, width = self.x.dims
        self.require_live(width == self.columns, f"rows of x are {width}, not {self.columns}")
        self.check_bias(self.rows)
        self.out.resize((*lead, self.rows))
        self.kernels(numel(lead))


@register("et_vk.linear_q4gsw.default", args="x weight scales group_size bias out")
class LinearQ4gsw(Linear):
    """A linear with 4-bit weights: u8 [N, ceil(K / 8) * 4]; scales: f32 [groups, N or more]."""

    def build(self) -> None:
        weight = self.tensor("weight", U8, rank=2)
        scales = self.tensor("scales", F32, rank=2)
        self.take_common_arguments(weight.max_dims[0], self.columns_of_x())
        self.declare(Weight(Q4GSW, weight, scales, self.integer("group_size")))


@register(
    "et_vk.linear_dq8ca_q4gsw.default",
    args="x x_scales x_zero_points weight weight_sums scales group_size bias out",
)
class LinearDq8caQ4gsw(Linear):
    """A linear that first rounds each row of x to 8 bits.

    The sums of the weight are for kernels that multiply integers; here x and the weight are
    multiplied as the floats they stand for.
    """

    def build(self) -> None:
        weight = self.tensor("weight", U8, rank=2)
        scales = self.tensor("scales", F32, rank=2)
        self.x_scales = self.tensor("x_scales", F32)
        self.zero_points = self.tensor("x_zero_points", I8, I32)
        self.take_common_arguments(weight.max_dims[0], self.columns_of_x())
        rounded = self.scratch("rounded x", self.x.max_bytes)
        self.round_rows = self.launch(
            "linear/quantise_rows",
            bind={
                "x": self.x,
                "scales": self.x_scales,
                "zero_points": self.zero_points,
                "out": rounded,
            },
            constants={"ZEROS_ARE_BYTES": float(self.zero_points.dtype is I8)},
        )
        self.declare(Weight(Q4GSW, weight, scales, self.integer("group_size")), rounded)

    def live(self) -> None:
        super().live()
        tokens, quads = numel(self.x.dims[:-1]), self.columns // 4
        for given in (self.x_scales, self.zero_points):
            self.require_live(
                numel(given.dims) == tokens,
                f"{given.label} is {list(given.dims)} for {tokens} rows",
            )
        self.round_rows.for_each(tokens * quads, rows=tokens, quads=quads)


class ChannelLinear(Linear):
    """A linear with one scale a row. weight: [N, packed K]; scales: f32 [N or more]."""

    kind: str
    dtype: DType

    def build(self) -> None:
        weight = self.tensor("weight", self.dtype, rank=2)
        scales = self.tensor("scales", F32, rank=1)
        self.take_common_arguments(weight.max_dims[0], self.columns_of_x())
        self.declare(Weight(self.kind, weight, scales))

    def take_bias(self) -> None:
        """Take none: the bias is added by an op of its own."""


@register("et_vk.linear_qcs4w.default", args="x weight scales out")
class LinearQcs4w(ChannelLinear):
    """A linear with weights u8 [N, K / 2], two columns a byte, the first high; 8 is 0."""

    kind, dtype = "qcs4w", U8


@register("aten._weight_int8pack_mm.default", args="x weight scales out")
class LinearQcs8w(ChannelLinear):
    """A linear with weights i8 [N, K]."""

    kind, dtype = "qcs8w", I8


class BlockLinear(Linear):
    """A linear with weights of a GGUF type: in blocks with scales, or 16-bit floats."""

    def build(self) -> None:
        kind = BY_OP[self.name]
        weight = self.tensor("weight", kind.dtype, rank=2)
        scales = self.tensor("scales", kind.scale_dtype) if kind.has_scales else None
        self.take_common_arguments(weight.max_dims[0], kind.columns(weight.max_dims[1]))
        self.declare(Weight(kind.name, weight, scales))


BY_OP = {kind.linear: kind for kind in BLOCK_KINDS.values()}
for _name, _kind in BY_OP.items():
    _scales = "scales " if _kind.has_scales else ""
    register(_name, args=f"x weight {_scales}bias out")(BlockLinear)


@register("aten.linear.default", args="x weight bias out")
class LinearF32(Linear):
    """A linear with f32 weights; computed ones, or rows that are no whole vectors, use matmul."""

    def build(self) -> None:
        self.weight = self.tensor("weight", F32, rank=2)  # [N, K]
        self.take_common_arguments(*self.weight.max_dims)
        fixed = as_constant(self.builder.program.values[self.weight.id]) is not None
        self.vectorised = fixed and self.columns % 4 == 0
        if self.vectorised:
            self.declare(Weight(FLOAT, self.weight))
        else:
            bias = self.bias or self.x
            self.matmul = self.launch(
                "linear/matmul", bind={"a": self.x, "b": self.weight, "bias": bias, "out": self.out}
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
        self.matmul.for_each(
            tiles,
            batches=1,
            rows=count,
            columns=rows,
            depth=depth,
            b_depth_stride=1,
            b_column_stride=depth,
            bias_row_stride=0 if self.bias is None or self.bias.rank == 1 else rows,
            bias_column_stride=1,
            has_bias=self.bias is not None,
            alpha=1.0,
            beta=1.0,
        )
