"""The kernel of rms_norm, for the op of that name and for ops that normalise their input first."""

from py_runtime.base.shapes import ceil_div
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.registry import Op

ROWS_OF_WORKGROUP = 64  # of shaders/rms_norm.wgsl; rms_norm_wide.wgsl takes one


class RmsNormKernel:
    def __init__(self, op: Op, x: Bindable, weight: LiveTensor, out: Bindable) -> None:
        wide = op.builder.target.wide and weight.max_dims[0] % 4 == 0
        self.group_rows = 1 if wide else ROWS_OF_WORKGROUP
        shader = "reduce/rms_norm_wide" if wide else "reduce/rms_norm"
        self.normalise = op.launch(shader, bind={"x": x, "weight": weight, "out": out})

    def __call__(self, rows: int, width: int, eps: float) -> None:
        self.normalise(ceil_div(rows, self.group_rows), rows=rows, width=width, eps=eps)

    def skip(self) -> None:
        self.normalise.skip()
