"""Matrix-matrix products: kernels for several tokens of x, in tiles."""

from py_runtime.base.shapes import ceil_div
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.epilogues import Epilogue
from py_runtime.ops.kernels.int8_products import (
    SplitTokens,
    has_paired_columns,
    split_for,
)
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.kernels.matrix_units import HalvedTokens, takes_matrices
from py_runtime.ops.kernels.norms import RmsNormKernel
from py_runtime.ops.kernels.tilings import choose_tilings
from py_runtime.ops.kernels.token_inputs import Norm
from py_runtime.ops.registry import Op

MAX_CPU_COLUMNS = 1 << 15  # eight rows of floats fit a thread's memory (shaders/linear/products.c)
# The work from which on large tiles are used, in squares of side 64: two for each core of a large
# device, which fewer would leave idle. Measured on an H200: with such tiles alone a prompt of 128
# tokens takes 21 % (8B parameters) to 105 % (135M) longer; with tiles of side 32 alone, one of 512
# tokens takes 5 % longer (1B and 8B).
MIN_SQUARES = 264
MIN_SHARE = 0.5  # of a large tile's tokens: with fewer, small tiles do less that is not needed


class Gemm:
    """Launches for several tokens with one matrix: x is prepared, then multiplied in tiles."""

    def __init__(
        self,
        op: Op,
        x: Bindable,
        max_tokens: int,
        matrix: Matrix,
        epilogue: Epilogue,
        norm: Norm | None,
        known: "dict[str, PreparedTokens]",
    ) -> None:
        self.epilogue = epilogue
        op.require(
            not op.builder.target.cpu or matrix.columns <= MAX_CPU_COLUMNS,
            f"rows of {matrix.columns} columns; the CPU multiplies up to {MAX_CPU_COLUMNS}",
        )
        self.eps = norm.eps if norm is not None else 0.0
        self.shared = {**matrix.fields, "eps": self.eps}
        self.prepare = prepare_tokens(op, x, max_tokens, matrix, norm, known)
        self.gemms = {
            tiling: op.launch(
                tiling.kernel,
                plugs={**epilogue.plugs, **tiling.plugs, **tiling.weight_plugs(matrix)},
                bind={**epilogue.bind, **matrix.bind, "x": self.prepare.out},
                constants=tiling.constants,
            )
            for tiling in choose_tilings(matrix, op.builder.target, op.builder.limits)
        }

    def __call__(self, tokens: int) -> None:
        self.prepare(tokens, self.eps)
        pairs = self.epilogue.pairs
        *larger, chosen = self.gemms
        for tiling in reversed(larger):
            is_filled = tokens >= MIN_SHARE * tiling.tokens
            if is_filled and tiling.squares(tokens, pairs) >= MIN_SQUARES:
                chosen = tiling
        for tiling, gemm in self.gemms.items():
            if tiling is not chosen:
                gemm.skip()
        groups = ceil_div(chosen.count(tokens, pairs), chosen.tiles)
        fields = {**self.epilogue.fields, **self.shared}
        self.gemms[chosen](groups, tokens=tokens, pairs=pairs, **fields)

    def skip(self) -> None:
        self.prepare.skip()
        for gemm in self.gemms.values():
            gemm.skip()


class NormalisedTokens:
    """Tokens of x as they are, or normalised where there is a norm."""

    def __init__(
        self, op: Op, x: Bindable, max_tokens: int, matrix: Matrix, norm: LiveTensor | None
    ) -> None:
        self.columns = matrix.columns
        self.out = x
        self.normalise: RmsNormKernel | None = None
        if norm is not None:
            self.out = op.scratch("normalised x", max_tokens * matrix.columns * 4)
            self.normalise = RmsNormKernel(op, x, norm, self.out)

    def __call__(self, tokens: int, eps: float) -> None:
        if self.normalise is not None:
            self.normalise(tokens, self.columns, eps)

    def skip(self) -> None:
        if self.normalise is not None:
            self.normalise.skip()


PreparedTokens = SplitTokens | HalvedTokens | NormalisedTokens


def prepare_tokens(
    op: Op,
    x: Bindable,
    max_tokens: int,
    matrix: Matrix,
    norm: Norm | None,
    known: dict[str, PreparedTokens],
) -> PreparedTokens:
    """Return tokens of x in the form a matrix needs; matrices that need the same form share it."""
    if takes_matrices(matrix, op.builder.target):
        if "halves" not in known:
            weight = norm.weight if norm is not None else None
            known["halves"] = HalvedTokens(op, x, max_tokens, matrix, weight)
        return known["halves"]
    arithmetic = split_for(matrix, op.builder.target)
    return prepare_for(op, x, max_tokens, matrix, norm, known, arithmetic)


def prepare_for(
    op: Op,
    x: Bindable,
    max_tokens: int,
    matrix: Matrix,
    norm: Norm | None,
    known: dict[str, PreparedTokens],
    arithmetic: str | None,  # that x is split into blocks for; None: it is not
    shares: int = 1,
) -> PreparedTokens:
    """Return tokens of x in the form that a matrix needs for an arithmetic."""
    weight = norm.weight if norm is not None else None
    key = "" if arithmetic is None else f"paired {has_paired_columns(matrix)}"
    if key in known:
        return known[key]
    if arithmetic is None:
        known[key] = NormalisedTokens(op, x, max_tokens, matrix, weight)
    else:
        known[key] = SplitTokens(op, x, max_tokens, matrix, weight, arithmetic, shares)
    return known[key]
