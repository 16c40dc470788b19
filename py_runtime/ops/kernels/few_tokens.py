"""Products of a few tokens, such as proposed ones: each weight is read once for several of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_target import BYTES, KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.ops.kernels.epilogues import Epilogue
from py_runtime.ops.kernels.gemm import NormalisedTokens, PreparedTokens
from py_runtime.ops.kernels.int8_products import (
    THREE_PLANES,
    SplitTokens,
    goes_by_blocks,
    has_paired_columns,
)
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.kernels.token_inputs import Norm
from py_runtime.ops.kernels.workgroups import is_roomy, usual_workgroup
from py_runtime.ops.registry import Op

GEMV_FEW, GEMV_FEW_INT8 = "linear/gemv_few", "linear/gemv_few_int8"
MOST_TOKENS = 16


@dataclass(frozen=True)
class FewTile:
    """A kernel, and what a workgroup takes of a product of a few tokens."""

    kernel: str
    tokens: int
    pair_lanes: int  # that share a pair of rows
    pairs: int = 1  # of rows that an invocation takes

    def constants(self, workgroup: int) -> dict[str, float]:
        """Return the constants of the kernel; gemv_few takes as many tokens as it says."""
        shared = {"WORKGROUP": workgroup, "PAIR_LANES": self.pair_lanes}
        if self.kernel == GEMV_FEW:
            return {**shared, "WHOLE_K": 1.0}
        return {**shared, "TOKENS": self.tokens, "PAIRS": self.pairs}

    def group_pairs(self, workgroup: int) -> int:
        """Return the pairs of rows that a workgroup takes."""
        return workgroup // self.pair_lanes * self.pairs


# In floats, and by int8 planes; each where workgroups are roomy, and where they are not.
FLOAT_TOKENS = figures_of(GEMV_FEW)["TOKENS"]
BY_FLOATS = {True: FewTile(GEMV_FEW, FLOAT_TOKENS, 32), False: FewTile(GEMV_FEW, FLOAT_TOKENS, 16)}
BY_BYTES = {
    True: FewTile(GEMV_FEW_INT8, 4, 16, pairs=2),
    False: FewTile(GEMV_FEW_INT8, 4, 16),
}


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
        self.prepare, planes = prepare_few_tokens(op, x, max_tokens, matrix, norm, known)
        self.workgroup = usual_workgroup(op.builder.limits)
        self.tile = choose_few_tile(op.builder.target, op.builder.limits)
        self.gemv = op.launch(
            self.tile.kernel,
            plugs={**epilogue.plugs, **planes, "blocks": matrix.kind},
            bind={**epilogue.bind, **matrix.bind, "x": self.prepare.out},
            constants=self.tile.constants(self.workgroup),
        )

    def __call__(self, tokens: int) -> None:
        self.prepare(tokens, self.eps)
        pairs = self.epilogue.pairs
        rounds = ceil_div(tokens, self.tile.tokens)
        groups = ceil_div(pairs, self.tile.group_pairs(self.workgroup)) * rounds
        self.gemv(groups, tokens=tokens, pairs=pairs, **self.epilogue.fields, **self.shared)

    def skip(self) -> None:
        self.prepare.skip()
        self.gemv.skip()


def choose_few_tile(target: KernelTarget, limits: Mapping[str, int]) -> FewTile:
    """Choose by the arithmetic of one token: in halves, too, a few are multiplied as floats."""
    return (BY_BYTES if target.one_token == BYTES else BY_FLOATS)[is_roomy(limits)]


def prepare_few_tokens(
    op: Op,
    x: Bindable,
    max_tokens: int,
    matrix: Matrix,
    norm: Norm | None,
    known: dict[str, PreparedTokens],
) -> tuple[PreparedTokens, dict[str, str]]:
    """Return a few tokens of x as a matrix needs them, and the plugs of a kernel that reads them.

    Matrices that need the same form share it.
    """
    weight = norm.weight if norm is not None else None
    if op.builder.target.one_token != BYTES:
        if "" not in known:
            known[""] = NormalisedTokens(op, x, max_tokens, matrix, weight)
        return known[""], {}
    key = f"paired {has_paired_columns(matrix)}"
    if key not in known:
        known[key] = SplitTokens(op, x, max_tokens, matrix, weight, THREE_PLANES)
    return known[key], {"planes": "three"}


def takes_few(matrix: Matrix, max_tokens: int, target: KernelTarget) -> bool:
    """Return whether the tokens that an op may have are few, and its weights in blocks."""
    return target.wide and max_tokens <= MOST_TOKENS and goes_by_blocks(matrix, target)
