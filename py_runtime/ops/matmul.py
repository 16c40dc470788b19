"""Products of two f32 matrices: aten.mm, aten.bmm, aten.addmm."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import Dims, broadcast_strides, broadcasts_to, ceil_div
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.values import LiveTensor
from py_runtime.ops.registry import Op, register

TILE = figures_of("linear/matmul")["TILE"]


class Matmul(Op):
    """A product of [..., M, K] and [..., K, N]; addmm has a bias that broadcasts to [M, N]."""

    rank = 2
    bias: LiveTensor | None = None
    alpha = beta = 1.0

    def build(self) -> None:
        self.a = self.tensor("a", F32, rank=self.rank)
        self.b = self.tensor("b", F32, rank=self.rank)
        self.out = self.tensor("out", F32, rank=self.rank)
        self.require(self.fits(self.a.max_dims, self.b.max_dims), self.misfit(maximum=True))
        self.multiply = self.launch(
            "linear/matmul",
            bind={"a": self.a, "b": self.b, "bias": self.bias or self.a, "out": self.out},
        )

    def fits(self, a: Dims, b: Dims) -> bool:
        return a[:-2] == b[:-2] and a[-1] == b[-2]

    def misfit(self, maximum: bool = False) -> str:
        a, b = (t.max_dims if maximum else t.dims for t in (self.a, self.b))
        return f"{list(a)} times {list(b)} is not a matrix product"

    def live(self) -> None:
        self.require_live(self.fits(self.a.dims, self.b.dims), self.misfit())
        *batch, rows, depth = self.a.dims
        columns = self.b.dims[-1]
        self.out.resize((*batch, rows, columns))
        batches = batch[0] if batch else 1
        row_stride, column_stride = self.bias_strides((rows, columns))
        tiles = batches * ceil_div(rows, TILE) * ceil_div(columns, TILE)
        self.multiply.for_each(
            tiles,
            batches=batches,
            rows=rows,
            columns=columns,
            depth=depth,
            b_depth_stride=columns,
            b_column_stride=1,
            bias_row_stride=row_stride,
            bias_column_stride=column_stride,
            has_bias=self.bias is not None,
            alpha=self.alpha,
            beta=self.beta,
        )

    def bias_strides(self, dims: Dims) -> Dims:
        if self.bias is None:
            return (0, 0)
        self.require_live(broadcasts_to(self.bias.dims, dims), no_bias(self.bias.dims, dims))
        return broadcast_strides(self.bias.dims, dims)


def no_bias(dims: Dims, wanted: Dims) -> str:
    """Return the message for a bias that does not fit."""
    return f"a bias of {list(dims)} does not broadcast to {list(wanted)}"


@register("aten.mm.default", args="a b out")
class Mm(Matmul):
    """The product a b: [M, K] times [K, N]."""


@register("aten.bmm.default", args="a b out")
class Bmm(Matmul):
    """A batch of products a[i] b[i]: [B, M, K] times [B, K, N]."""

    rank = 3


@register("aten.addmm.default", args="bias a b beta alpha out")
class Addmm(Matmul):
    """The sum beta * bias + alpha * (a b); with beta = 0 the bias is not read, as in torch."""

    def build(self) -> None:
        bias = self.tensor("bias", F32)
        self.beta, self.alpha = self.number("beta"), self.number("alpha")
        self.bias = bias if self.beta != 0.0 else None
        super().build()
        most = self.out.max_dims
        self.require(broadcasts_to(bias.max_dims, most), no_bias(bias.max_dims, most))
