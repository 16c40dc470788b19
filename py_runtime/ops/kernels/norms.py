"""The kernel of RMS norms, for the op of that name and for ops that normalise their input first."""

from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.workgroups import usual_workgroup
from py_runtime.ops.registry import Op


class RmsNormKernel:
    """A launch that normalises rows, adds `residual` and multiplies by `factor` [1].

    Calling it sets the number and the width of the rows. Without a weight, x must be a tensor.
    """

    def __init__(
        self,
        op: Op,
        x: Bindable,
        weight: LiveTensor | None,
        out: Bindable,
        residual: LiveTensor | None = None,
        factor: LiveTensor | None = None,
    ) -> None:
        given = {"weight": weight, "residual": residual, "factor": factor}
        self.has = {f"has_{name}": tensor is not None for name, tensor in given.items()}
        sized = x if weight is None else weight
        assert isinstance(sized, LiveTensor), "rows without a weight are a tensor's"
        target = op.builder.target
        self.wide = target.cpu or (target.wide and sized.max_dims[-1] % 4 == 0)
        shader = "reduce/rms_norm_wide" if self.wide else "reduce/rms_norm"
        constants = {"WORKGROUP": usual_workgroup(op.builder.limits)} if self.wide else {}
        bind = {"x": x, "out": out, **{name: tensor or x for name, tensor in given.items()}}
        self.normalise = op.launch(shader, bind=bind, constants=constants)

    def __call__(self, rows: int, width: int, eps: float) -> None:
        fields = {"rows": rows, "width": width, "eps": eps, **self.has}
        if self.wide:
            self.normalise(rows, **fields)  # a workgroup for each
        else:
            self.normalise.for_each(rows, **fields)

    def skip(self) -> None:
        self.normalise.skip()
