"""Products of several tokens by a GPU's matrix units, with both factors in halves.

Weights of every kind are rounded to halves, and tokens of x to one half or to the sum of two; sums
are floats over all columns (shaders/linear/gemm_matrices.wgsl).
"""

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_target import MATRICES, KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.registry import Op
from py_runtime.program.weight_kinds import BLOCK

GEMM_MATRICES, HALVE_TOKENS = "linear/gemm_matrices", "linear/halve_tokens"
VECTOR_COLUMNS, VECTOR_BYTES = 8, 16
BEYOND_HALVES = frozenset({"mxfp4"})  # exponents reach from 2^-127 to 2^127
# What halves hold as it is, or but for what is smaller than 2^-14. Of normally distributed numbers
# the others lose 2e-4 of their RMS (tests/ops/test_matrix_kernels.py).
HELD_BY_HALVES = frozenset({"f16", "bf16"})


def takes_matrices(matrix: Matrix, target: KernelTarget) -> bool:
    """Return whether matrix units multiply several tokens with the matrix."""
    if target.many_tokens != MATRICES or matrix.kind in BEYOND_HALVES:
        return False
    return not target.exact or matrix.kind in HELD_BY_HALVES


def parts_of_x(target: KernelTarget) -> int:
    """Return how many halves add up to a column of x."""
    return 2 if target.exact else 1


def factor_plugs(matrix: Matrix) -> dict[str, str]:
    """Return the plugs by which a block of the weight becomes halves."""
    if matrix.whole_blocks:
        return {"factor": "blocks", "blocks": matrix.kind}
    return {"factor": "octets", **matrix.octet_plugs}


class HalvedTokens:
    """Tokens of x as halves with a scale each, normalised first where there is a norm."""

    def __init__(
        self, op: Op, x: Bindable, max_tokens: int, matrix: Matrix, norm: LiveTensor | None
    ) -> None:
        self.columns = matrix.columns
        self.tokens_at_once = figures_of(HALVE_TOKENS)["TOKENS"]
        parts = parts_of_x(op.builder.target)
        vectors = ceil_div(self.columns, BLOCK) * BLOCK // VECTOR_COLUMNS * parts
        self.out = op.scratch("halves of x", max_tokens * (vectors + 1) * VECTOR_BYTES)
        self.halve = op.launch(
            HALVE_TOKENS,
            plugs={},
            bind={"x": x, "norm": norm or x, "halved": self.out},
            constants={"NORMED": float(norm is not None), "PARTS": parts},
        )

    def __call__(self, tokens: int, eps: float) -> None:
        groups = ceil_div(tokens, self.tokens_at_once)
        self.halve(groups, tokens=tokens, quads=self.columns // 4, eps=eps)

    def skip(self) -> None:
        self.halve.skip()
