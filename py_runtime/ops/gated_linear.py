"""inpage.gated_linear: gelu(x weightᵀ), by its tanh approximation, times a part of a tensor."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import ceil_div, numel
from py_runtime.live.launch import Bindable, Launch
from py_runtime.ops.kernels.epilogues import Epilogue, make_residual_epilogue
from py_runtime.ops.kernels.fused_arguments import SUM, WEIGHTS, take_input_output, take_matrices
from py_runtime.ops.kernels.linears import LinearKernels
from py_runtime.ops.kernels.matrices import rows_of
from py_runtime.ops.registry import Op, register

GATE = {"gate": "gelu"}


@register("inpage.gated_linear.default", args=f"x {WEIGHTS} parts number out")
@register("inpage.gated_linear.of_sum", args=f"{SUM} {WEIGHTS} parts number out")
class GatedLinear(Op):
    """A linear that gates part `number` of parts: [..., count, rows]; `of_sum` computes x, too."""

    def build(self) -> None:
        self.ends = take_input_output(self)
        self.x, self.out = self.ends.x, self.ends.out  # [..., columns], [..., rows]
        self.columns = self.x.max_dims[-1]
        self.parts = self.tensor("parts", F32, rank=self.x.rank + 1)
        self.part = self.integer("number")
        matrices = take_matrices(self, self.columns)
        self.rows = rows_of(matrices)
        *_, count, width = self.parts.max_dims
        self.require(
            len(matrices) == 1 and not self.has("biases"), "one weight without a bias is taken"
        )
        self.require(
            width == self.rows == self.out.max_dims[-1] and 0 <= self.part < count,
            f"part {self.part} of {list(self.parts.max_dims)} does not fit {self.rows} rows",
        )
        self.stride = count * width
        at_once = Epilogue(
            {"epilogue": "rows", "output": "part", **GATE},
            {"out": self.out, "parts": self.parts},
            ceil_div(self.rows, 2),
            {"rows": self.rows, "first_part": self.part * width, "part_stride": self.stride},
        )
        max_tokens = numel(self.x.max_dims[:-1])
        self.combine: Launch | None = None
        if max_tokens == 1 or self.builder.target.cpu:
            many = at_once
        else:
            sums = self.scratch("gate", max_tokens * self.rows * 4)
            many = make_residual_epilogue(self.ends.read, self.rows, sums)
        norm, summed = None, self.ends.summed
        self.kernels = LinearKernels(
            self, self.x, matrices, at_once, norm, many=many, summed=summed
        )
        if many is not at_once:
            bind: dict[str, Bindable] = {"gate": sums, "parts": self.parts, "out": self.out}
            self.combine = self.launch("elementwise/gated_part", plugs=GATE, bind=bind)

    def live(self) -> None:
        self.ends.resize(self)
        *lead, width = self.x.dims
        parts = self.parts.dims
        self.require_live(width == self.columns, f"rows of x are {width}, not {self.columns}")
        self.require_live(
            parts == (*lead, *self.parts.max_dims[-2:]),
            f"parts {list(parts)} do not fit {list(self.x.dims)}",
        )
        self.out.resize((*lead, self.rows))
        tokens = numel(lead)
        self.kernels(tokens)
        if self.combine is None:
            return
        if tokens == 1:
            self.combine.skip()
            return
        count = tokens * self.rows
        first = self.part * self.rows
        self.combine.for_each(count, count=count, width=self.rows, stride=self.stride, first=first)
