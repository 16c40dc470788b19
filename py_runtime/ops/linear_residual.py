"""inpage.linear_residual: a linear and what is added to it afterwards, in one kernel."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.ops.kernels.fused_arguments import WEIGHTS, take_biases, take_matrix
from py_runtime.ops.kernels.linears import LinearKernels, into_rows
from py_runtime.ops.registry import Op, register


@register("inpage.linear_residual.default", args=f"x {WEIGHTS} residual out")
class LinearResidual(Op):
    """out = x weightᵀ + bias + residual; residual has out's dims."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)  # [..., columns]
        self.residual = self.tensor("residual", F32, rank=self.x.rank)  # [..., rows]
        self.out = self.tensor("out", F32, rank=self.x.rank)
        self.matrix = take_matrix(self, self.x.max_dims[-1])
        bias = take_biases(self, self.matrix)
        finish = into_rows(self.x, self.matrix.rows, self.out, bias, self.residual)
        self.kernels = LinearKernels(self, self.x, self.matrix, finish)

    def live(self) -> None:
        *lead, width = self.x.dims
        self.require_live(
            width == self.matrix.columns, f"rows of x are {width}, not {self.matrix.columns}"
        )
        dims = (*lead, self.matrix.rows)
        self.require_live(
            self.residual.dims == dims,
            f"{list(self.residual.dims)} cannot be added to {list(dims)} here",
        )
        self.out.resize(dims)
        self.kernels(numel(lead))
