"""inpage.low_rank: what low-rank adapters (LoRA) add to linears of one x."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.ops.kernels.epilogues import make_residual_epilogue, make_scaled_epilogue
from py_runtime.ops.kernels.linears import LinearKernels
from py_runtime.ops.kernels.matrices import Weight, matrices_of
from py_runtime.ops.registry import Op, register
from py_runtime.program.weight_kinds import FLOAT


@register("inpage.low_rank.default", args="x down strengths up biases? out")
class LowRank(Op):
    """The sum of adapters: ((x downᵀ) * strengths) upᵀ + biases.

    x: [..., columns]; down: [ranks, columns]; strengths: [ranks]; up: [rows, ranks], where rows and
    ranks are those of all adapters and linears, one after the other; out: [..., rows].
    """

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.out = self.tensor("out", F32, rank=self.x.rank)
        down, up = self.tensor("down", F32, rank=2), self.tensor("up", F32, rank=2)
        strengths = self.tensor("strengths", F32, rank=1)
        self.columns, (self.rows, ranks) = self.x.max_dims[-1], up.max_dims
        self.require(
            down.max_dims == (ranks, self.columns) and strengths.max_dims == (ranks,),
            f"down {list(down.max_dims)}, strengths {list(strengths.max_dims)} and up "
            f"{list(up.max_dims)} do not fit each other, or x {list(self.x.max_dims)}",
        )
        biases = self.tensors("biases", F32) if self.has("biases") else []
        self.require(
            not biases or sum(bias.max_dims[0] for bias in biases) >= self.rows,
            f"the biases are shorter than {self.rows} rows",
        )
        tokens = numel(self.x.max_dims[:-1])
        inner = self.scratch("in the ranks", tokens * ranks * 4)
        narrow = matrices_of(self, [Weight(FLOAT, down)], self.columns)
        scaled = make_scaled_epilogue(ranks, inner, strengths)
        self.down = LinearKernels(self, self.x, narrow, scaled)
        wide = matrices_of(self, [Weight(FLOAT, up)], ranks)
        bias = self.join(biases) if biases else None
        added = make_residual_epilogue(self.x, self.rows, self.out, bias)
        self.up = LinearKernels(self, self.x, wide, added, source=inner)

    def live(self) -> None:
        *lead, width = self.x.dims
        self.require_live(width == self.columns, f"rows of x are {width}, not {self.columns}")
        self.out.resize((*lead, self.rows))
        self.down(numel(lead))
        self.up(numel(lead))
