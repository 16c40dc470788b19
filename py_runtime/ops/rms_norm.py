"""et_vk.rms_norm: x * rsqrt(mean(x²) + eps) * weight over the last dimension.

A weight of null stands for ones.
"""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.ops.kernels.norms import RmsNormKernel
from py_runtime.ops.registry import Op, register


@register("et_vk.rms_norm.default", args="x weight eps out")
class RmsNorm(Op):
    """out = x · rsqrt(mean(x²) + eps) · weight, by rows. x, out: [..., width]; weight: [width]."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)  # [..., width]
        weight = self.tensor("weight", F32, rank=1) if self.has("weight") else None  # [width]
        self.eps = self.number("eps")
        self.out = self.tensor("out", F32)
        self.require(self.x.rank >= 1, "x has no rows")
        if weight is not None:
            self.require(
                self.x.max_dims[-1] == weight.max_dims[0],
                f"rows of {list(self.x.max_dims)} do not fit a weight of {list(weight.max_dims)}",
            )
        self.kernel = RmsNormKernel(self, self.x, weight, self.out)

    def live(self) -> None:
        *lead, width = self.x.dims
        self.out.resize(self.x.dims)
        self.kernel(numel(lead), width, self.eps)
