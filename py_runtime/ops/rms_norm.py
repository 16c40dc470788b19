"""et_vk.rms_norm: x * rsqrt(mean(x²) + eps) * weight over the last dimension."""

from py_runtime.dtypes import F32
from py_runtime.ops.registry import Op, register
from py_runtime.shapes import ceil_div, numel

WORKGROUP = 64  # as in shaders/rms_norm.wgsl


@register("et_vk.rms_norm.default", args="x weight eps out")
class RmsNorm(Op):
    def build(self) -> None:
        self.x = self.tensor("x", F32)  # [..., width]
        weight = self.tensor("weight", F32, rank=1)  # [width]
        self.eps = self.number("eps")
        self.out = self.tensor("out", F32)
        self.require(
            self.x.rank >= 1 and self.x.max_dims[-1] == weight.max_dims[0],
            f"rows of {list(self.x.max_dims)} do not fit a weight of {list(weight.max_dims)}",
        )
        self.normalize = self.launch(
            "rms_norm", bind={"x": self.x, "weight": weight, "out": self.out}
        )

    def live(self) -> None:
        *lead, width = self.x.dims
        rows = numel(lead)
        self.out.resize(self.x.dims)
        self.normalize(ceil_div(rows, WORKGROUP), rows=rows, width=width, eps=self.eps)
