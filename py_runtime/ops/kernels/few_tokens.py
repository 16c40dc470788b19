"""Products of a few tokens, such as proposed ones: each weight is read once for several of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_target import BYTES, KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.ops.kernels.epilogues import Epilogue
from py_runtime.ops.kernels.gemm import PreparedTokens, prepare_for
from py_runtime.ops.kernels.int8_products import goes_by_blocks, shares_of_few
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.kernels.token_inputs import Norm
from py_runtime.ops.kernels.workgroups import is_roomy
from py_runtime.ops.registry import Op

GEMV_FEW, GEMV_FEW_INT8 = "linear/gemv_few", "linear/gemv_few_int8"
MOST_TOKENS = 16
# Of a matrix that goes by planes. Measured on an H200, µs of four tokens with a matrix of Q4_K, by
# floats and by planes: 28,672 x 4,096 in 100 and 60, 128,256 x 4,096 in 416 and 211; but
# 4,096 x 4,096 in 20 and 26, 6,144 x 4,096 in 30 and 28, 4,096 x 14,336 in 57 and 56.
# With three planes the first two take 75 and 265.
MIN_ROWS, MIN_WEIGHTS = 8192, 1 << 25


@dataclass(frozen=True)
class FewTile:
    """A kernel, and what a workgroup takes of a product of a few tokens."""

    kernel: str
    tokens: int
    pairs: int  # of rows
    constants: Mapping[str, float]


def tile_floats(workgroup: int, pair_lanes: int) -> FewTile:
    """Return the tile of linear/gemv_few with so many invocations, and that share a pair."""
    constants = {"WHOLE_K": 1.0, "WORKGROUP": workgroup, "PAIR_LANES": pair_lanes}
    return FewTile(GEMV_FEW, figures_of(GEMV_FEW)["TOKENS"], workgroup // pair_lanes, constants)


IN_FLOATS = {True: tile_floats(256, 32), False: tile_floats(128, 16)}  # by roomy workgroups
KNOWN = figures_of(GEMV_FEW_INT8)
BY_PLANES = FewTile(GEMV_FEW_INT8, KNOWN["TOKENS"], KNOWN["GROUP_PAIRS"], {})


class FewTokens:
    """Launches for 2 to 16 tokens with one matrix, whose x is normalised beforehand."""

    def __init__(
        self,
        op: Op,
        x: Bindable,
        max_tokens: int,
        matrix: Matrix,
        epilogue: Epilogue,
        norm: Norm | None,
        known: dict[str, PreparedTokens],
    ) -> None:
        self.epilogue = epilogue
        self.eps = norm.eps if norm is not None else 0.0
        self.shared = {**matrix.fields, "eps": self.eps}
        by_planes = goes_by_planes(matrix, op.builder.target)
        self.tile = BY_PLANES if by_planes else IN_FLOATS[is_roomy(op.builder.limits)]
        arithmetic, shares = (BYTES, shares_of_few(matrix.columns)) if by_planes else (None, 1)
        self.prepare = prepare_for(op, x, max_tokens, matrix, norm, known, arithmetic, shares)
        self.gemv = op.launch(
            self.tile.kernel,
            plugs={**epilogue.plugs, "blocks": matrix.kind},
            bind={**epilogue.bind, **matrix.bind, "x": self.prepare.out},
            constants=self.tile.constants,
        )

    def __call__(self, tokens: int) -> None:
        self.prepare(tokens, self.eps)
        pairs = self.epilogue.pairs
        groups = ceil_div(pairs, self.tile.pairs) * ceil_div(tokens, self.tile.tokens)
        self.gemv(groups, tokens=tokens, pairs=pairs, **self.epilogue.fields, **self.shared)

    def skip(self) -> None:
        self.prepare.skip()
        self.gemv.skip()


def goes_by_planes(matrix: Matrix, target: KernelTarget) -> bool:
    """Return whether a few tokens are split into int8 planes, which takes a kernel of its own."""
    is_large = matrix.rows >= MIN_ROWS and matrix.rows * matrix.columns >= MIN_WEIGHTS
    return target.one_token == BYTES and is_large


def takes_few(matrix: Matrix, max_tokens: int, target: KernelTarget) -> bool:
    """Return whether the tokens that an op may have are few, and its weights in blocks."""
    return target.wide and max_tokens <= MOST_TOKENS and goes_by_blocks(matrix, target)
