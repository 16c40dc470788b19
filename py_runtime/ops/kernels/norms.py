"""The kernel of rms_norm, for the op of that name and for ops that normalise their input first."""

from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.workgroups import usual_workgroup
from py_runtime.ops.registry import Op


class RmsNormKernel:
    """Calling it sets how many rows there are, and how wide; `residual` is added to them."""

    def __init__(
        self,
        op: Op,
        x: Bindable,
        weight: LiveTensor,
        out: Bindable,
        residual: LiveTensor | None = None,
    ) -> None:
        self.has_residual = residual is not None
        self.wide = op.builder.target.wide and weight.max_dims[0] % 4 == 0
        shader = "reduce/rms_norm_wide" if self.wide else "reduce/rms_norm"
        constants = {"WORKGROUP": usual_workgroup(op.builder.limits)} if self.wide else {}
        bind = {"x": x, "weight": weight, "out": out, "residual": residual or x}
        self.normalise = op.launch(shader, bind=bind, constants=constants)

    def __call__(self, rows: int, width: int, eps: float) -> None:
        fields = {"rows": rows, "width": width, "eps": eps, "has_residual": self.has_residual}
        if self.wide:
            self.normalise(rows, **fields)  # a workgroup for each
        else:
            self.normalise.for_each(rows, **fields)

    def skip(self) -> None:
        self.normalise.skip()
