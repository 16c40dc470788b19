"""How products of many lines of x are shared out, on which device."""

from collections.abc import Mapping
from dataclasses import dataclass

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.ops.kernels.limb_products import GEMM_LIMBS, SIDES, goes_by_limbs
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.kernels.workgroups import is_roomy

GEMM, GEMM_WIDE = "linear/gemm", "linear/gemm_wide"
SHARING_LANES = figures_of("linear/fragments/quads")["QUAD_LANES"]


@dataclass(frozen=True)
class Tiling:
    """How a matrix product is shared out."""

    kernel: str
    tiles: int  # that a workgroup computes
    lines: int  # of a tile
    pairs: int
    lines_from: str | None = None  # how linear/gemm comes by lines of x
    side: int | None = None  # of the squares
    workgroup: int | None = None  # of linear/gemm_wide

    def weight_plugs(self, matrix: Matrix) -> dict[str, str]:
        """How the kernel reads the kind of weights."""
        return {"blocks": matrix.kind} if self.kernel == GEMM_LIMBS else matrix.octet_plugs

    @property
    def plugs(self) -> dict[str, str]:
        return {} if self.lines_from is None else {"lines": self.lines_from}

    @property
    def constants(self) -> dict[str, float]:
        given = {"SIDE": self.side, "WORKGROUP": self.workgroup}
        return {name: value for name, value in given.items() if value is not None}

    def count(self, lines: int, pairs: int) -> int:
        """The tiles of a product."""
        return ceil_div(pairs, self.pairs) * ceil_div(lines, self.lines)


def in_registers(lines_from: str) -> Tiling:
    """An invocation has a tile to itself, or shares it with its neighbours."""
    known = figures_of(GEMM)
    tiles = known["WORKGROUP"] // known["SHARERS"]
    return Tiling(GEMM, tiles, known["TILE_LINES"], known["TILE_PAIRS"], lines_from)


def in_squares(side: int, workgroup: int) -> Tiling:
    """A workgroup has a square of the product, with what it needs in workgroup memory."""
    return Tiling(GEMM_WIDE, 1, lines=side, pairs=side // 2, side=side, workgroup=workgroup)


def of_limbs(side: int) -> Tiling:
    """The same by whole numbers."""
    return Tiling(GEMM_LIMBS, 1, lines=side, pairs=side // 2, side=side)


ALONE, SHARED = in_registers("alone"), in_registers("shared")
WIDE, SMALL = in_squares(64, 256), in_squares(32, 256)
SMALLEST = in_squares(32, 128)  # which every device can have
BY_LIMBS = tuple(of_limbs(side) for side in SIDES)


def tilings_for(
    matrix: Matrix, target: KernelTarget, limits: Mapping[str, int]
) -> tuple[Tiling, ...]:
    """Where there are several, the first that has enough tiles is taken."""
    if goes_by_limbs(matrix, target):
        return BY_LIMBS
    if target.wide and is_roomy(limits):
        return WIDE, SMALL
    if target.wide:
        return (SMALLEST,)
    return (SHARED,) if target.lanes >= SHARING_LANES else (ALONE,)
