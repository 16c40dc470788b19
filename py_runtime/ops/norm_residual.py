"""inpage.norm_residual: a row's RMS norm, added to another row, in one kernel.

The sum may be multiplied by one number.
"""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.ops.kernels.norms import RmsNormKernel
from py_runtime.ops.registry import Op, register


@register("inpage.norm_residual.default", args="x weight eps residual factor? out")
class NormResidual(Op):
    """out = (residual + x * rsqrt(mean(x²) + eps) * weight) * factor; residual has x's dims.

    The factor is a tensor [1], or null: 1.
    """

    def build(self) -> None:
        self.x = self.tensor("x", F32)  # [..., width]
        weight = self.tensor("weight", F32, rank=1)  # [width]
        self.eps = self.number("eps")
        self.residual = self.tensor("residual", F32, rank=self.x.rank)
        factor = self.tensor("factor", F32, rank=1) if self.has("factor") else None
        self.out = self.tensor("out", F32, rank=self.x.rank)
        self.require(
            self.x.rank >= 1 and self.x.max_dims[-1] == weight.max_dims[0],
            f"rows of {list(self.x.max_dims)} do not fit a weight of {list(weight.max_dims)}",
        )
        if factor is not None:
            self.require(factor.max_dims == (1,), f"a factor of {list(factor.max_dims)}, not [1]")
        self.kernel = RmsNormKernel(self, self.x, weight, self.out, self.residual, factor)

    def live(self) -> None:
        *lead, width = self.x.dims
        self.require_live(
            self.residual.dims == self.x.dims,
            f"{list(self.residual.dims)} cannot be added to {list(self.x.dims)} here",
        )
        self.out.resize(self.x.dims)
        self.kernel(numel(lead), width, self.eps)
