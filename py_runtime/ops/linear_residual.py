"""inpage.linear_residual: a linear and a residual that is added to it, in one kernel."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.ops.kernels.epilogues import make_residual_epilogue
from py_runtime.ops.kernels.fused_arguments import WEIGHTS, take_biases, take_matrices
from py_runtime.ops.kernels.linears import LinearKernels
from py_runtime.ops.kernels.matrices import rows_of
from py_runtime.ops.registry import Op, register


@register("inpage.linear_residual.default", args=f"x {WEIGHTS} residual out")
class LinearResidual(Op):
    """A linear with a residual: out = x weightᵀ + bias + residual, which has out's dims."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)  # [..., columns]
        self.residual = self.tensor("residual", F32, rank=self.x.rank)  # [..., rows]
        self.out = self.tensor("out", F32, rank=self.x.rank)
        self.columns = self.x.max_dims[-1]
        matrices = take_matrices(self, self.columns)
        self.rows = rows_of(matrices)
        bias = take_biases(self, matrices)
        epilogue = make_residual_epilogue(self.x, self.rows, self.out, bias, self.residual)
        self.kernels = LinearKernels(self, self.x, matrices, epilogue)

    def live(self) -> None:
        *lead, width = self.x.dims
        self.require_live(width == self.columns, f"rows of x are {width}, not {self.columns}")
        dims = (*lead, self.rows)
        self.require_live(
            self.residual.dims == dims,
            f"{list(self.residual.dims)} cannot be added to {list(dims)} here",
        )
        self.out.resize(dims)
        self.kernels(numel(lead))
