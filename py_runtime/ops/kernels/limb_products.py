"""Products by whole numbers: how a matrix in blocks is shared out, and x cut into limbs for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.registry import Op
from py_runtime.program.weight_kinds import BLOCK, BLOCK_KINDS

GEMV_LIMBS, MIXED_LIMBS = "linear/gemv_limbs", "linear/gemv_mixed_limbs"
GEMM_LIMBS, CUT_LINES = "linear/gemm_limbs", "linear/cut_lines"
SIDES = (64, 32)  # of the squares of linear/gemm_limbs, on every device


@dataclass(frozen=True)
class LimbGeometry:
    """How linear/gemv_limbs shares out a matrix: see its overrides."""

    workgroup: int
    beside: int
    group_pairs: int
    steps: int = 1
    ahead: bool = True

    @property
    def team(self) -> int:
        return self.workgroup // self.group_pairs

    def tile(self, blocks: int) -> int:
        """Blocks of x at a time: as few times as they fit, and about as many each time."""
        unit = self.steps * self.team
        least = max(unit, self.workgroup // 4)
        times = ceil_div(blocks, max(least, MAX_TILE // unit * unit))
        return max(least, unit * ceil_div(blocks, unit * times))


MAX_TILE = figures_of(GEMV_LIMBS)["TILE"]
# Measured on an H200 in a decoder's own chain of kernels. Where rows abound, a workgroup takes
# many, and lays x out the more seldom; where they are few, many invocations share a long row.
MOST_ROWS, MANY_ROWS, FEW_ROWS, FEWEST_ROWS = 65536, 16384, 2048, 768
SHORT_ROWS, LONG_ROWS, LONGER_ROWS, LONGEST_ROWS = 1024, 2048, 4096, 8192  # in columns
ABOUNDING = LimbGeometry(256, beside=4, group_pairs=64, steps=2)
ABOUNDING_LONG = LimbGeometry(256, beside=8, group_pairs=16)
ABOUNDING_MOST = LimbGeometry(256, beside=8, group_pairs=32)
ABOUNDING_SHORT = LimbGeometry(128, beside=4, group_pairs=32)
LONG = LimbGeometry(256, beside=8, group_pairs=8)
LONGEST = LimbGeometry(256, beside=8, group_pairs=8, steps=2, ahead=False)
FEW_LONGEST = LimbGeometry(256, beside=8, group_pairs=4, ahead=False)
SHORT = LimbGeometry(128, beside=4, group_pairs=8)
FEW_SHORT = LimbGeometry(128, beside=4, group_pairs=4)


def limb_geometry(matrix: Matrix, limits: Mapping[str, int]) -> LimbGeometry:
    """By the matrix's shape; a device with small workgroups halves them."""
    if matrix.rows >= MANY_ROWS:
        chosen = _of_many_rows(matrix)
    elif matrix.columns >= LONGEST_ROWS:
        chosen = FEW_LONGEST if matrix.rows <= FEW_ROWS else LONGEST
    elif matrix.columns >= LONG_ROWS:
        chosen = LONG
    else:
        chosen = SHORT if matrix.rows >= FEWEST_ROWS else FEW_SHORT
    if _in_large_blocks(matrix) and chosen.steps == 1 and chosen is not ABOUNDING_MOST:
        chosen = replace(chosen, ahead=False)
    if chosen.workgroup > limits["max_compute_invocations_per_workgroup"]:
        chosen = replace(chosen, workgroup=128, group_pairs=chosen.group_pairs // 2)
    return chosen


def _of_many_rows(matrix: Matrix) -> LimbGeometry:
    if matrix.columns < SHORT_ROWS:
        return ABOUNDING_SHORT
    if matrix.rows >= MOST_ROWS:
        return ABOUNDING_MOST
    if matrix.columns < LONGER_ROWS or matrix.kind == "q8_0":
        return ABOUNDING_LONG
    return ABOUNDING


def _in_large_blocks(matrix: Matrix) -> bool:
    """Whose scales take registers that others have for weights still to come."""
    return matrix.kind in BLOCK_KINDS and BLOCK_KINDS[matrix.kind].block > BLOCK


def goes_by_limbs(matrix: Matrix, target: KernelTarget) -> bool:
    """Whether the matrix is multiplied as whole numbers."""
    return target.wide and matrix.whole_blocks


def is_paired(matrix: Matrix) -> bool:
    """Whether neighbouring columns share a byte of the weight: x is laid out accordingly."""
    return bool(figures_of(f"shared/weights/blocks_{matrix.kind}")["PAIRED"])


class CutLines:
    """Lines of x as linear/gemm_limbs takes them, normalised first where there is a norm."""

    def __init__(
        self, op: Op, x: Bindable, max_lines: int, matrix: Matrix, norm: LiveTensor | None
    ) -> None:
        self.columns = matrix.columns
        known = figures_of(CUT_LINES)
        self.lines_at_once = known["LINES"]
        block_bytes = 16 * known["VECTORS"]
        self.lines = op.scratch("x in limbs", max_lines * matrix.columns // BLOCK * block_bytes)
        self.cut = op.launch(
            CUT_LINES,
            bind={"x": x, "norm": norm or x, "cut": self.lines},
            constants={"NORMED": float(norm is not None), "PAIRED": float(is_paired(matrix))},
        )

    def __call__(self, lines: int, eps: float) -> None:
        groups = ceil_div(lines, self.lines_at_once)
        self.cut(groups, count=lines, quads=self.columns // 4, eps=eps)

    def skip(self) -> None:
        self.cut.skip()
