"""Tilings of matrix products of several tokens, by the kind of device."""

from dataclasses import dataclass

from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.ops.kernels.int8_products import (
    GEMM_INT8,
    TILE_SIDES,
    goes_by_blocks,
    uses_int8_planes,
)
from py_runtime.ops.kernels.matrices import Matrix

GEMM, GEMM_WIDE, GEMM_F32 = "linear/gemm", "linear/gemm_wide", "linear/gemm_f32"
SHARING_LANES = figures_of("linear/fragments/quads")["QUAD_LANES"]


@dataclass(frozen=True)
class Tiling:
    """A kernel, and the tile of the product that it computes."""

    kernel: str
    tiles: int  # of a workgroup
    tokens: int  # of a tile
    pairs: int
    loads: str | None = None  # how linear/gemm loads tokens: linear/fragments/tokens_*
    side: int | None = None  # of the square tiles of linear/gemm_int8

    def weight_plugs(self, matrix: Matrix) -> dict[str, str]:
        """Return the plugs by which the kernel reads this kind of weights."""
        by_blocks = self.kernel in (GEMM_INT8, GEMM_F32)
        return {"blocks": matrix.kind} if by_blocks else matrix.octet_plugs

    @property
    def plugs(self) -> dict[str, str]:
        return {} if self.loads is None else {"tokens": self.loads}

    @property
    def constants(self) -> dict[str, float]:
        return {} if self.side is None else {"SIDE": self.side}

    def count(self, tokens: int, pairs: int) -> int:
        """Return the number of tiles of a product."""
        return ceil_div(pairs, self.pairs) * ceil_div(tokens, self.tokens)


def tile_registers(loads: str) -> Tiling:
    """Return the tiling in which a few neighbouring invocations keep a tile in registers."""
    known = figures_of(GEMM)
    tiles = known["WORKGROUP"] // known["SHARERS"]
    return Tiling(GEMM, tiles, known["TILE_TOKENS"], known["TILE_PAIRS"], loads)


def tile_workgroup(kernel: str) -> Tiling:
    """Return the tiling in which a workgroup keeps both factors of a square in its memory."""
    side = figures_of(kernel)["SIDE"]
    return Tiling(kernel, 1, tokens=side, pairs=side // 2)


def tile_int8(side: int) -> Tiling:
    """Return the tiling of squares that are multiplied by int8 planes."""
    return Tiling(GEMM_INT8, 1, tokens=side, pairs=side // 2, side=side)


ALONE, SHARED = tile_registers("alone"), tile_registers("shared")
WIDE, LARGE_FLOATS = tile_workgroup(GEMM_WIDE), tile_workgroup(GEMM_F32)
INT8 = tuple(tile_int8(side) for side in TILE_SIDES)


ALL_TOKENS = 2**31  # of a tile: a workgroup of the CPU takes a few rows and every token
CPU_PAIRS = 8  # MAX_PAIRS of shaders/linear/fragments/epilogue.h


def tile_rows(kernel: str) -> Tiling:
    """Return the tiling of the CPU, in rows of the weight alone."""
    return Tiling(kernel, 1, tokens=ALL_TOKENS, pairs=CPU_PAIRS)


def choose_tilings(matrix: Matrix, target: KernelTarget) -> tuple[Tiling, ...]:
    """Choose the tilings of a matrix; a call takes the first that has enough tiles for it."""
    if target.cpu:
        return (tile_rows(GEMM_INT8 if uses_int8_planes(matrix, target) else GEMM_WIDE),)
    if uses_int8_planes(matrix, target):
        return INT8
    if target.wide:
        return (LARGE_FLOATS, WIDE) if goes_by_blocks(matrix, target) else (WIDE,)
    return (SHARED,) if target.lanes >= SHARING_LANES else (ALONE,)
