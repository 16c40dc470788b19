"""Products by blocks: tile shapes of the GEMV, and tokens of x made ready for the GEMM.

Weights in blocks of 32 columns are multiplied as integers, floats or halves. For integers a column
of x becomes one, with one scale a block, and its bytes are int8 planes: three for one token, two
for several. For halves it is scaled in the same way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from py_runtime.base.shapes import ceil_div, round_up
from py_runtime.gpu.kernel_target import BYTES, FLOATS, HALVES, MATRICES, KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.registry import Op
from py_runtime.program.weight_kinds import BLOCK

# For one token: a kernel of one kind of weights and one of two, by the arithmetic.
GEMVS = {
    BYTES: ("linear/gemv_int8", "linear/gemv_mixed_int8"),
    FLOATS: ("linear/gemv_f32", "linear/gemv_mixed_f32"),
    HALVES: ("linear/gemv_f16", "linear/gemv_mixed_f16"),
}
GEMM_INT8, GEMM_F16 = "linear/gemm_int8", "linear/gemm_f16"
SPLIT_PLANES = "linear/split_planes"
FORMS = {BYTES: "planes", HALVES: "halves"}  # of several tokens of x
TILE_SIDES = (64, 32)  # of linear/gemm_int8, on every device
CPU_BLOCKS, CPU_BLOCK_BYTES = 4, 128  # a token's blocks are padded: see shaders/linear/tokens.h


@dataclass(frozen=True)
class GemvTile:
    """The tile of a matrix that a workgroup takes: see linear/fragments/pair_shares."""

    group_pairs: int
    unroll: int = 1
    workgroup: int = 256

    @property
    def pair_lanes(self) -> int:
        """The invocations that share a pair of rows."""
        return self.workgroup // self.group_pairs

    def blocks_at_once(self, blocks: int, most: int) -> int:
        """Return how many blocks of x are laid out at a time: few rounds, about equally long."""
        unit = self.unroll * self.pair_lanes
        least = max(unit, self.workgroup // 4)
        rounds = ceil_div(blocks, max(least, most // unit * unit))
        return max(least, unit * ceil_div(blocks, unit * rounds))


# The blocks of x that fit a workgroup's memory.
MAX_BLOCKS = {by: figures_of(kernels[0])["MAX_TILE"] for by, kernels in GEMVS.items()}
# With many rows a workgroup takes many of them, so that x is laid out less often; with few rows,
# many invocations share a long one. Measured on an H200, as parts of the time of one token:
# MOST_ROWS gains 3 to 5 % over MANY_ROWS in gate and up of an 8B model and loses 1 to 9 % in those
# of a 1B model; LONG_K gains 1 to 10 % in down of an 8B model, LONG_K_FEW_ROWS 3 to 9 % in that of
# a 1B model. It makes down of Gemma 3 1B (1,152 rows) 15 % faster.
USUAL = GemvTile(group_pairs=8)
LONG_K = GemvTile(group_pairs=8, unroll=2)
LONG_K_FEW_ROWS = GemvTile(group_pairs=4)
MANY_ROWS = GemvTile(group_pairs=16)
MOST_ROWS = GemvTile(group_pairs=32)


def choose_gemv_tile(matrix: Matrix, limits: Mapping[str, int]) -> GemvTile:
    """Choose by the matrix's shape; a device with small workgroups gets halved ones."""
    if matrix.rows >= 24576:
        chosen = MOST_ROWS
    elif matrix.rows >= 16384:
        chosen = MANY_ROWS
    elif matrix.rows <= 2048 and matrix.columns >= 4096:
        chosen = LONG_K_FEW_ROWS
    elif matrix.columns >= 8192:
        chosen = LONG_K
    else:
        chosen = USUAL
    if chosen.workgroup > limits["max_compute_invocations_per_workgroup"]:
        chosen = replace(chosen, workgroup=128, group_pairs=chosen.group_pairs // 2)
    return chosen


def goes_by_blocks(matrix: Matrix, target: KernelTarget) -> bool:
    """Return whether a kernel for one token takes the matrix in blocks, whatever its arithmetic."""
    return (target.wide or target.cpu) and matrix.whole_blocks


def split_for(matrix: Matrix, target: KernelTarget) -> str | None:
    """Return the arithmetic that several tokens are split into blocks for; None: they are not."""
    if not goes_by_blocks(matrix, target):
        return None
    arithmetic = target.one_token if target.many_tokens == MATRICES else target.many_tokens
    return arithmetic if arithmetic in FORMS else None


def shares_of_few(columns: int) -> int:
    """Return how many workgroups share the blocks of a few tokens: each invocation has one."""
    known = figures_of(SPLIT_PLANES)
    return ceil_div(columns // BLOCK, known["TEAM"])


def has_paired_columns(matrix: Matrix) -> bool:
    """Return whether neighbouring columns share a byte of the weight: x is laid out accordingly."""
    return bool(figures_of(f"shared/weights/blocks_{matrix.kind}")["PAIRED"])


class SplitTokens:
    """Tokens of x in blocks with a scale each, normalised first where there is a norm.

    They are int8 planes for linear/gemm_int8 and gemv_few_int8, and halves for linear/gemm_f16.
    Of a few tokens, several workgroups may share the blocks.
    """

    def __init__(
        self,
        op: Op,
        x: Bindable,
        max_tokens: int,
        matrix: Matrix,
        norm: LiveTensor | None,
        arithmetic: str,
        shares: int = 1,
    ) -> None:
        self.columns, self.shares = matrix.columns, shares
        self.tokens_at_once = figures_of(SPLIT_PLANES)["TOKENS"]
        blocks = matrix.columns // BLOCK
        block_bytes = 16 * figures_of("linear/fragments/plane_layout")["VECTORS"]
        if op.builder.target.cpu:
            blocks, block_bytes = round_up(blocks, CPU_BLOCKS), CPU_BLOCK_BYTES
        self.out = op.scratch("blocks of x", max_tokens * blocks * block_bytes)
        self.split = op.launch(
            SPLIT_PLANES,
            plugs={"form": FORMS[arithmetic]},
            bind={"x": x, "norm": norm or x, "planes": self.out},
            constants={
                "NORMED": float(norm is not None),
                "PAIRED": float(has_paired_columns(matrix)),
                **({"SHARES": shares} if shares > 1 else {}),
            },
        )

    def __call__(self, tokens: int, eps: float) -> None:
        groups = ceil_div(tokens, self.tokens_at_once) * self.shares
        self.split(groups, tokens=tokens, quads=self.columns // 4, eps=eps)

    def skip(self) -> None:
        self.split.skip()
