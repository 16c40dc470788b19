"""inpage.joined_linears: several linears of one x, their rows one after the other."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.ops.kernels.epilogues import make_residual_epilogue
from py_runtime.ops.kernels.fused_arguments import WEIGHTS, take_biases, take_matrices
from py_runtime.ops.kernels.linears import LinearKernels
from py_runtime.ops.kernels.matrices import rows_of
from py_runtime.ops.registry import Op, register


@register("inpage.joined_linears.default", args=f"x {WEIGHTS} out")
class JoinedLinears(Op):
    """Linears of one x; out: [..., rows of all weights]."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)  # [..., columns]
        self.out = self.tensor("out", F32, rank=self.x.rank)
        self.columns = self.x.max_dims[-1]
        matrices = take_matrices(self, self.columns)
        self.rows = rows_of(matrices)
        epilogue = make_residual_epilogue(self.x, self.rows, self.out, take_biases(self, matrices))
        self.kernels = LinearKernels(self, self.x, matrices, epilogue)

    def live(self) -> None:
        *lead, width = self.x.dims
        self.require_live(width == self.columns, f"rows of x are {width}, not {self.columns}")
        self.out.resize((*lead, self.rows))
        self.kernels(numel(lead))
