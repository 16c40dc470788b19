"""torchao.choose_qparams_affine: a scale and a zero point for each row, from what the row holds."""

import numpy as np

from py_runtime.base.dtypes import F32, I8, I32
from py_runtime.base.shapes import ceil_div, numel
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.ops.registry import Op, register

ROWS_OF_INVOCATION = figures_of("linear/choose_qparams")["ROWS"]
INT8_RANGE = (-128, 127)


@register(
    "torchao.choose_qparams_affine.default",
    args="x mapping block_size target_dtype quant_min quant_max eps scale_dtype zero_dtype keepdim "
    "out",
)
class ChooseQparams(Op):
    """Asymmetric quantisation of each row; the dtypes of the outputs decide, not the arguments."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)  # [..., width]
        mapping = self.string("mapping")
        self.require(mapping == "ASYMMETRIC", f"mapping '{mapping}' is not ASYMMETRIC")
        blocks = self.int_list("block_size")
        rows_of = [*[1] * (self.x.rank - 1), *self.x.max_dims[-1:]]
        self.require(
            self.x.rank >= 1 and blocks == rows_of,
            f"blocks are {blocks}; {rows_of} are the rows of x",
        )
        self.least, self.most = (
            self.integer(arg) if self.has(arg) else default
            for arg, default in zip(("quant_min", "quant_max"), INT8_RANGE, strict=True)
        )
        self.require(
            INT8_RANGE[0] <= self.least < self.most <= INT8_RANGE[1],
            f"values from {self.least} to {self.most} are not a range of int8",
        )
        self.eps = self.number("eps") if self.has("eps") else float(np.finfo(np.float32).tiny)
        self.keepdim = self.boolean("keepdim")
        outs = self.tensors("out", F32, I8, I32)
        self.require(
            [out.dtype is F32 for out in outs] == [True, False],
            "the outputs must be f32 scales and int8 or int32 zero points",
        )
        self.scales, self.zero_points = outs
        self.choose = self.launch(
            "linear/choose_qparams",
            bind={"x": self.x, "scales": self.scales, "zero_points": self.zero_points},
            constants={"ZEROS_ARE_BYTES": float(self.zero_points.dtype is I8)},
        )

    def live(self) -> None:
        *lead, width = self.x.dims
        dims = (*lead, 1) if self.keepdim else tuple(lead)
        self.scales.resize(dims)
        self.zero_points.resize(dims)
        rows = numel(lead)
        self.choose.for_each(
            ceil_div(rows, ROWS_OF_INVOCATION),
            rows=rows,
            width=width,
            eps=self.eps,
            quant_min=float(self.least),
            quant_max=float(self.most),
        )
