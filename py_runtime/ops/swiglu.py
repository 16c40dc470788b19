"""inpage.swiglu: silu(x gateᵀ) * (x upᵀ) in one kernel; x is normalised first where it has a norm.

inpage.geglu is the same with gelu, by its tanh approximation. `of_sum` computes x, too.
"""

from py_runtime.base.shapes import numel
from py_runtime.live.launch import Launch
from py_runtime.ops.kernels.epilogues import (
    Epilogue,
    bias_fields,
    each_token,
    make_bias_epilogue,
    make_residual_epilogue,
)
from py_runtime.ops.kernels.fused_arguments import (
    NORM,
    SUM,
    WEIGHTS,
    take_biases,
    take_input_output,
    take_matrices,
    take_norm,
)
from py_runtime.ops.kernels.linears import LinearKernels
from py_runtime.ops.kernels.matrices import part_rows
from py_runtime.ops.registry import Op, register


@register("inpage.swiglu.default", "inpage.geglu.default", args=f"x {NORM} {WEIGHTS} out")
@register("inpage.swiglu.of_sum", "inpage.geglu.of_sum", args=f"{SUM} {NORM} {WEIGHTS} out")
class Swiglu(Op):
    """A gated MLP's first half; the weights are gate and up."""

    def build(self) -> None:
        self.ends = take_input_output(self)
        self.x, self.out = self.ends.x, self.ends.out  # [..., columns], [..., rows of gate]
        self.require(self.x.rank == self.out.rank, f"out is {list(self.out.max_dims)}")
        read, summed = self.ends.read, self.ends.summed
        columns = self.x.max_dims[-1]
        matrices = take_matrices(self, columns)
        rows = part_rows(matrices)
        self.require(
            len(rows) == 2 and len(set(rows)) == 1,
            f"weights of {list(rows)} rows; gate and up must have as many",
        )
        self.columns, self.rows = columns, rows[0]
        bias, norm = take_biases(self, matrices), take_norm(self, columns)
        bind = {"out": self.out, "bias": bias or read}
        gate = {"gate": "silu" if self.name.startswith("inpage.swiglu.") else "gelu"}
        plugs = {"epilogue": "swiglu", **gate}
        own = each_token(bias)
        epilogue = Epilogue(plugs, bind, self.rows, bias_fields(bias), each_token=own)
        max_tokens = numel(self.x.max_dims[:-1])
        self.combine: Launch | None = None
        self.is_one = len(matrices) == 1
        if self.is_one and (self.builder.target.fuses_tokens or max_tokens == 1):
            self.kernels = LinearKernels(self, self.x, matrices, epilogue, norm, summed=summed)
            return
        # Gate and up of two kinds are two matrices. Software adapters take seconds to compile a
        # GEMM, and other ops use this one, too.
        sums = self.scratch("gate and up", max_tokens * 2 * self.rows * 4)
        apart = make_residual_epilogue(read, 2 * self.rows, sums, bias)
        one = apart if summed is None else make_bias_epilogue(read, 2 * self.rows, sums, bias)
        one = epilogue if self.is_one else one
        self.kernels = LinearKernels(self, self.x, matrices, one, norm, many=apart, summed=summed)
        bind = {"sums": sums, "out": self.out}
        self.combine = self.launch("linear/swiglu", plugs=gate, bind=bind)

    def live(self) -> None:
        self.ends.resize(self)
        *lead, width = self.x.dims
        self.require_live(width == self.columns, f"rows of x are {width}, not {self.columns}")
        self.out.resize((*lead, self.rows))
        tokens = numel(lead)
        self.kernels(tokens)
        if self.combine is not None and (tokens > 1 or not self.is_one):
            count = tokens * self.rows
            self.combine.for_each(count, count=count, rows=self.rows)
        elif self.combine is not None:
            self.combine.skip()
