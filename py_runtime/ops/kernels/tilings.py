"""Tilings of matrix products of several tokens, by the kind of device."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_target import BYTES, HALVES, KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.ops.kernels.int8_products import (
    GEMM_F16,
    GEMM_INT8,
    TILE_SIDES,
    goes_by_blocks,
    split_for,
)
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.ops.kernels.matrix_units import (
    GEMM_MATRICES,
    factor_plugs,
    parts_of_x,
    takes_matrices,
)
from py_runtime.ops.kernels.workgroups import is_roomy

GEMM, GEMM_WIDE, GEMM_F32 = "linear/gemm", "linear/gemm_wide", "linear/gemm_f32"
SQUARE = 64 * 64
SHARING_LANES = figures_of("linear/fragments/quads")["QUAD_LANES"]


@dataclass(frozen=True)
class Tiling:
    """A kernel, and the tile of the product that it computes."""

    kernel: str
    tiles: int  # of a workgroup
    tokens: int  # of a tile
    pairs: int
    loads: str | None = None  # how linear/gemm loads tokens: linear/fragments/tokens_*
    side: int | None = None  # of the square tiles of linear/gemm_int8 and gemm_f16
    workgroup: int | None = None  # where that of linear/gemm_f16 is not its own
    units: str | None = None  # of a subgroup of linear/gemm_matrices: linear/fragments/units_*
    parts: int | None = None  # of x there

    def weight_plugs(self, matrix: Matrix) -> dict[str, str]:
        """Return the plugs by which the kernel reads this kind of weights."""
        if self.kernel == GEMM_MATRICES:
            return factor_plugs(matrix)
        by_blocks = self.kernel in (GEMM_INT8, GEMM_F32, GEMM_F16)
        return {"blocks": matrix.kind} if by_blocks else matrix.octet_plugs

    @property
    def plugs(self) -> dict[str, str]:
        given = {"tokens": self.loads, "units": self.units}
        return {slot: plug for slot, plug in given.items() if plug is not None}

    @property
    def constants(self) -> dict[str, float]:
        given = {"SIDE": self.side, "WORKGROUP": self.workgroup, "PARTS": self.parts}
        return {name: value for name, value in given.items() if value is not None}

    def count(self, tokens: int, pairs: int) -> int:
        """Return the number of tiles of a product."""
        return ceil_div(pairs, self.pairs) * ceil_div(tokens, self.tokens)

    def squares(self, tokens: int, pairs: int) -> int:
        """Return how many squares of side 64 these tiles would fill: a measure of their work."""
        return self.count(tokens, pairs) * self.tokens * 2 * self.pairs // SQUARE


def tile_registers(loads: str) -> Tiling:
    """Return the tiling in which a few neighbouring invocations keep a tile in registers."""
    known = figures_of(GEMM)
    tiles = known["WORKGROUP"] // known["SHARERS"]
    return Tiling(GEMM, tiles, known["TILE_TOKENS"], known["TILE_PAIRS"], loads)


def tile_workgroup(kernel: str, tokens: str, rows: str) -> Tiling:
    """Return the tiling in which a workgroup keeps both factors in its memory, by its constants."""
    known = figures_of(kernel)
    return Tiling(kernel, 1, tokens=known[tokens], pairs=known[rows] // 2)


def tile_blocks(kernel: str, side: int, workgroup: int | None = None) -> Tiling:
    """Return the tiling of squares that are multiplied block by block."""
    return Tiling(kernel, 1, tokens=side, pairs=side // 2, side=side, workgroup=workgroup)


def tile_units(units: str) -> Tiling:
    """Return the tiling of squares in small matrices, of which each subgroup keeps so many."""
    known = figures_of(GEMM_MATRICES)
    along = figures_of(f"linear/fragments/units_{units}")["UNITS_ALONG"]
    side = known["SUBGROUPS_ALONG"] * along * known["UNIT_SIDE"]
    return Tiling(GEMM_MATRICES, 1, tokens=side, pairs=side // 2, units=units)


ALONE, SHARED = tile_registers("alone"), tile_registers("shared")
WIDE = tile_workgroup(GEMM_WIDE, "SIDE", "SIDE")
LARGE_FLOATS = tile_workgroup(GEMM_F32, "TOKENS", "ROWS")
INT8 = tuple(tile_blocks(GEMM_INT8, side) for side in TILE_SIDES)
# Halves take twice the memory of bytes: small tiles have half as many splits.
HALF = (tile_blocks(GEMM_F16, 64), tile_blocks(GEMM_F16, 32, workgroup=64))

# Measured on an H200: squares of 128 are the quickest of large products, of 64 those of small ones.
UNITS = tile_units("four"), tile_units("two")


ALL_TOKENS = 2**31  # of a tile: a workgroup of the CPU takes a few rows and every token
CPU_PAIRS = 8  # MAX_PAIRS of shaders/linear/fragments/epilogue.h


def tile_rows(kernel: str) -> Tiling:
    """Return the tiling of the CPU, in rows of the weight alone."""
    return Tiling(kernel, 1, tokens=ALL_TOKENS, pairs=CPU_PAIRS)


def choose_tilings(
    matrix: Matrix, target: KernelTarget, limits: Mapping[str, int]
) -> tuple[Tiling, ...]:
    """Choose the tilings of a matrix; a call takes the first that has enough tiles for it."""
    if takes_matrices(matrix, target):
        return tuple(replace(tiling, parts=parts_of_x(target)) for tiling in UNITS)
    arithmetic = split_for(matrix, target)
    if target.cpu:
        return (tile_rows(GEMM_INT8 if arithmetic == BYTES else GEMM_WIDE),)
    if arithmetic is not None:
        return {BYTES: INT8, HALVES: HALF}[arithmetic]
    if target.wide:
        has_large = goes_by_blocks(matrix, target) and is_roomy(limits)
        return (LARGE_FLOATS, WIDE) if has_large else (WIDE,)
    return (SHARED,) if target.lanes >= SHARING_LANES else (ALONE,)
