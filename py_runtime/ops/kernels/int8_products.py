"""Products by int8 planes: tile shapes of the GEMV, and tokens of x split into planes for the GEMM.

Weights in blocks of 32 columns are multiplied as integers. A column of x becomes an integer, with
one scale a block, and its bytes are the planes: three for one token, two for several.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from py_runtime.base.shapes import ceil_div, round_up
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.registry import Op
from py_runtime.program.weight_kinds import BLOCK, BLOCK_KINDS

GEMV_INT8, GEMV_MIXED_INT8 = "linear/gemv_int8", "linear/gemv_mixed_int8"
GEMM_INT8, SPLIT_PLANES = "linear/gemm_int8", "linear/split_planes"
TILE_SIDES = (64, 32)  # of linear/gemm_int8, on every device
CPU_BLOCKS, CPU_BLOCK_BYTES = 4, 128  # a token's blocks are padded: see shaders/linear/tokens.h


@dataclass(frozen=True)
class GemvTile:
    """The tile of a matrix that a workgroup of linear/gemv_int8 takes: see its overrides."""

    workgroup: int
    adjacent: int
    group_pairs: int
    unroll: int = 1
    prefetch: bool = True

    @property
    def pair_lanes(self) -> int:
        """The invocations that share a pair of rows."""
        return self.workgroup // self.group_pairs

    def blocks_at_once(self, blocks: int) -> int:
        """Return how many blocks of x are laid out at a time: few rounds, about equally long."""
        unit = self.unroll * self.pair_lanes
        least = max(unit, self.workgroup // 4)
        rounds = ceil_div(blocks, max(least, MAX_BLOCKS // unit * unit))
        return max(least, unit * ceil_div(blocks, unit * rounds))


MAX_BLOCKS = figures_of(GEMV_INT8)["TILE"]
# Measured on an H200 in a decoder's own chain of kernels. With many rows a workgroup takes many of
# them, so that x is laid out less often; with few rows, many invocations share a long one.
MOST_ROWS, MANY_ROWS, FEW_ROWS, FEWEST_ROWS = 65536, 16384, 2048, 768
SHORT_K, LONG_K, LONGER_K, LONGEST_K = 1024, 2048, 4096, 8192  # columns
MANY_ROWS_LONG_K = GemvTile(256, adjacent=4, group_pairs=64, unroll=2)
MANY_ROWS_MID_K = GemvTile(256, adjacent=8, group_pairs=16)
MANY_ROWS_SHORT_K = GemvTile(128, adjacent=4, group_pairs=32)
MOST_ROWS_ANY_K = GemvTile(256, adjacent=8, group_pairs=32)
SOME_ROWS_LONG_K = GemvTile(256, adjacent=8, group_pairs=8)
SOME_ROWS_LONGEST_K = GemvTile(256, adjacent=8, group_pairs=8, unroll=2, prefetch=False)
FEW_ROWS_LONGEST_K = GemvTile(256, adjacent=8, group_pairs=4, prefetch=False)
SOME_ROWS_SHORT_K = GemvTile(128, adjacent=4, group_pairs=8)
FEW_ROWS_SHORT_K = GemvTile(128, adjacent=4, group_pairs=4)


def choose_gemv_tile(matrix: Matrix, limits: Mapping[str, int]) -> GemvTile:
    """Choose by the matrix's shape; a device with small workgroups gets halved ones."""
    if matrix.rows >= MANY_ROWS:
        chosen = _choose_for_many_rows(matrix)
    elif matrix.columns >= LONGEST_K:
        chosen = FEW_ROWS_LONGEST_K if matrix.rows <= FEW_ROWS else SOME_ROWS_LONGEST_K
    elif matrix.columns >= LONG_K:
        chosen = SOME_ROWS_LONG_K
    else:
        chosen = SOME_ROWS_SHORT_K if matrix.rows >= FEWEST_ROWS else FEW_ROWS_SHORT_K
    if _has_super_blocks(matrix) and chosen.unroll == 1 and chosen is not MOST_ROWS_ANY_K:
        chosen = replace(chosen, prefetch=False)
    if chosen.workgroup > limits["max_compute_invocations_per_workgroup"]:
        chosen = replace(chosen, workgroup=128, group_pairs=chosen.group_pairs // 2)
    return chosen


def _choose_for_many_rows(matrix: Matrix) -> GemvTile:
    if matrix.columns < SHORT_K:
        return MANY_ROWS_SHORT_K
    if matrix.rows >= MOST_ROWS:
        return MOST_ROWS_ANY_K
    if matrix.columns < LONGER_K or matrix.kind == "q8_0":
        return MANY_ROWS_MID_K
    return MANY_ROWS_LONG_K


def _has_super_blocks(matrix: Matrix) -> bool:
    """Return whether blocks share scales: these take the registers that a prefetch would need."""
    return matrix.kind in BLOCK_KINDS and BLOCK_KINDS[matrix.kind].block > BLOCK


def uses_int8_planes(matrix: Matrix, target: KernelTarget) -> bool:
    """Return whether the matrix is multiplied by int8 planes of x."""
    return (target.wide or target.cpu) and matrix.whole_blocks


def has_paired_columns(matrix: Matrix) -> bool:
    """Return whether neighbouring columns share a byte of the weight: x is laid out accordingly."""
    return bool(figures_of(f"shared/weights/blocks_{matrix.kind}")["PAIRED"])


class PlaneTokens:
    """Tokens of x as int8 planes for linear/gemm_int8, normalised first where there is a norm."""

    def __init__(
        self, op: Op, x: Bindable, max_tokens: int, matrix: Matrix, norm: LiveTensor | None
    ) -> None:
        self.columns = matrix.columns
        known = figures_of(SPLIT_PLANES)
        self.tokens_at_once = known["TOKENS"]
        blocks, block_bytes = matrix.columns // BLOCK, 16 * known["VECTORS"]
        if op.builder.target.cpu:
            blocks, block_bytes = round_up(blocks, CPU_BLOCKS), CPU_BLOCK_BYTES
        self.out = op.scratch("int8 planes of x", max_tokens * blocks * block_bytes)
        self.split = op.launch(
            SPLIT_PLANES,
            bind={"x": x, "norm": norm or x, "planes": self.out},
            constants={
                "NORMED": float(norm is not None),
                "PAIRED": float(has_paired_columns(matrix)),
            },
        )

    def __call__(self, tokens: int, eps: float) -> None:
        groups = ceil_div(tokens, self.tokens_at_once)
        self.split(groups, tokens=tokens, quads=self.columns // 4, eps=eps)

    def skip(self) -> None:
        self.split.skip()
