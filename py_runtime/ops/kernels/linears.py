"""The kernels of linears, and of what is fused with them.

A kernel says how x is shared out among invocations. It has slots for fragments that know one thing
each: how the weight is stored (shaders/shared/weights), and what becomes of the sums (a "finish").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from py_runtime.base.shapes import ceil_div, numel
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.limb_products import (
    GEMM_LIMBS,
    GEMV_LIMBS,
    SIDES,
    CutLines,
    is_paired,
    limb_geometry,
)
from py_runtime.ops.kernels.matrices import Matrices, Matrix
from py_runtime.ops.kernels.norms import RmsNormKernel
from py_runtime.ops.kernels.workgroups import is_roomy
from py_runtime.ops.registry import Op
from py_runtime.program.weight_kinds import BLOCK

GEMV, GEMV_WIDE = "linear/gemv", "linear/gemv_wide"
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
ENOUGH_SQUARES = 264  # of 64, two for each core of a large device: fewer leave it idle


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


def goes_by_limbs(matrix: Matrix, target: KernelTarget) -> bool:
    """Whether the matrix is multiplied as whole numbers."""
    return target.wide and matrix.whole_blocks


@dataclass(frozen=True)
class Finish:
    """What becomes of the sums: fragments, and what they bind beside x and the weight."""

    plugs: Mapping[str, str]
    bind: Mapping[str, Bindable]
    pairs: int  # of rows, as the shader pairs them
    fields: Mapping[str, object]  # its own parameters
    start: str = "first_row"  # the parameter that says where a matrix begins
    start_rows: int = 1  # and how many rows it counts as one

    def of(self, matrix: Matrix) -> "Finish":
        """For one of several matrices."""
        fields = {**self.fields, self.start: matrix.first_row // self.start_rows}
        if "rows" in fields:
            fields["rows"] = matrix.rows
        return replace(self, pairs=ceil_div(matrix.rows, 2), fields=fields)


def into_rows(
    x: LiveTensor,
    rows: int,
    out: Bindable,
    bias: Bindable | None = None,
    residual: LiveTensor | None = None,
) -> Finish:
    """out: [lines, rows]; x, which is read, stands in for what there is not."""
    bind = {"out": out, "bias": bias or x, "residual": residual or x}
    has = {"has_bias": bias is not None, "has_residual": residual is not None}
    places = {"rows": rows, "first_row": 0, "stride": rows}
    return Finish({"finish": "rows"}, bind, ceil_div(rows, 2), {**places, **has})


def into_sums(x: LiveTensor, rows: int, out: Bindable, bias: Bindable | None) -> Finish:
    """The same, by kernels that bind one buffer less."""
    places = {"rows": rows, "first_row": 0, "stride": rows, "has_bias": bias is not None}
    bind = {"out": out, "bias": bias or x}
    return Finish({"finish": "sums"}, bind, ceil_div(rows, 2), places)


@dataclass(frozen=True)
class Norm:
    """x is normalised first: weight [columns]."""

    weight: LiveTensor
    eps: float


@dataclass(frozen=True)
class Summed:
    """x is a sum that is computed first: (residual + norm(of)) * factor."""

    of: LiveTensor
    norm: Norm
    residual: LiveTensor
    factor: LiveTensor | None


class LinearKernels:
    """One kernel for one line of x, others for many, a set of them for each matrix; x may be
    computed and normalised on the way.

    `many` is what becomes of the sums of many lines, where that is not the same as of one; `source`
    is read in place of x, of which then only the number of lines counts.
    """

    def __init__(
        self,
        op: Op,
        x: LiveTensor,
        matrices: Matrices,
        finish: Finish,
        norm: Norm | None = None,
        many: Finish | None = None,
        source: Bindable | None = None,
        summed: Summed | None = None,
    ) -> None:
        self.op, self.summed = op, summed
        self.tensors = dict.fromkeys(tensor for matrix in matrices for tensor in matrix.tensors)
        max_lines = numel(x.max_dims[:-1])
        self.sum_up: RmsNormKernel | None = None
        if summed is not None and max_lines > 1:
            added = (x, summed.residual, summed.factor)
            self.sum_up = RmsNormKernel(op, summed.of, summed.norm.weight, *added)
        self.columns = x.max_dims[-1]
        self.of_each: list[MatrixKernels] = []
        known: dict[str, Lines] = {}
        for matrix in matrices:
            ends = [finish, many or finish]
            if len(matrices) > 1:
                ends = [end.of(matrix) for end in ends]
            own = MatrixKernels(op, source or x, max_lines, matrix, ends, norm, known, summed)
            self.of_each.append(own)
            summed = None  # the first one's kernel leaves x for the others

    def __call__(self, lines: int) -> None:
        for tensor in self.tensors:
            if tensor.dims != tensor.max_dims:
                self.op.require_live(False, f"{tensor.label} cannot be resized")
        if self.sum_up is not None and self.summed is not None:
            if lines == 1:
                self.sum_up.skip()
            else:
                self.sum_up(lines, self.columns, self.summed.norm.eps)
        for kernels in self.of_each:
            kernels(lines)

    def skip(self) -> None:
        """Of ops whose x is never a sum."""
        for kernels in self.of_each:
            kernels.skip()


class MatrixKernels:
    """Those of one matrix; `known` is what others have made of x for many lines."""

    def __init__(
        self,
        op: Op,
        x: Bindable,
        max_lines: int,
        matrix: Matrix,
        ends: Sequence[Finish],
        norm: Norm | None,
        known: "dict[str, Lines]",
        summed: Summed | None,
    ) -> None:
        self.eps = norm.eps if norm is not None else 0.0
        row = RowOfX.plain(x) if summed is None else RowOfX.summed(summed, x)
        self.one = OneLine(op, row, matrix, ends[0], norm)
        self.shared = self.one.shared
        self.many: ManyLines | None = None
        if max_lines > 1:
            self.many = ManyLines(op, x, max_lines, matrix, ends[1], norm, known)

    def __call__(self, lines: int) -> None:
        if lines == 1 or self.many is None:
            self.one()
            if self.many is not None:
                self.many.skip()
        else:
            self.one.skip()
            self.many(lines, self.eps, self.shared)

    def skip(self) -> None:
        self.one.skip()
        if self.many is not None:
            self.many.skip()


class OneLine:
    """A matrix-vector product; the norm of x costs no kernel of its own, nor does the sum it is."""

    def __init__(
        self, op: Op, row: "RowOfX", matrix: Matrix, finish: Finish, norm: Norm | None = None
    ) -> None:
        self.finish = finish
        self.shared = {**matrix.fields, "eps": norm.eps if norm is not None else 0.0}
        # Without a norm something that is read, and large enough, stands in its place.
        weight = norm.weight if norm is not None else next(iter(row.bind.values()))
        variant = one_line_variant(matrix, op.builder.target, op.builder.limits)
        self.group_pairs = variant.pairs
        self.gemv = op.launch(
            variant.kernel,
            plugs={**finish.plugs, **variant.plugs, **row.plugs},
            bind={**finish.bind, **matrix.bind, **row.bind, "norm": weight},
            constants={**variant.constants, **row.constants, "NORMED": float(norm is not None)},
        )

    def __call__(self) -> None:
        pairs = self.finish.pairs
        groups = ceil_div(pairs, self.group_pairs)
        self.gemv(groups, count=1, pairs=pairs, **self.finish.fields, **self.shared)

    def skip(self) -> None:
        self.gemv.skip()


@dataclass(frozen=True)
class RowOfX:
    """Where a kernel for one line has it from: a file linear/fragments/row_*."""

    plugs: Mapping[str, str]
    bind: Mapping[str, Bindable]
    constants: Mapping[str, float]

    @classmethod
    def plain(cls, x: Bindable) -> "RowOfX":
        return cls({"row": "plain"}, {"x": x}, {})

    @classmethod
    def summed(cls, summed: Summed, x: Bindable) -> "RowOfX":
        """x is written."""
        bind = {
            "x": summed.of,
            "sum_norm": summed.norm.weight,
            "added_to": summed.residual,
            "sum_factor": summed.factor or summed.of,
            "row_sum": x,
        }
        constants = {"SUM_EPS": summed.norm.eps, "HAS_FACTOR": float(summed.factor is not None)}
        return cls({"row": "summed"}, bind, constants)


@dataclass(frozen=True)
class OneLineVariant:
    """A kernel for one line of x."""

    kernel: str
    plugs: Mapping[str, str]
    pairs: int  # of rows that a workgroup computes
    constants: Mapping[str, float]


def one_line_variant(
    matrix: Matrix, target: KernelTarget, limits: Mapping[str, int]
) -> OneLineVariant:
    """The kernel for one line of x (a token), by the matrix's shape and what the GPU has."""
    if goes_by_limbs(matrix, target):
        return by_limbs(matrix, limits)
    kernel = GEMV_WIDE if target.wide else GEMV
    known = figures_of(kernel)
    weight = matrix.octet_plugs
    constants = {
        "SCALE_PER_OCTET": float(matrix.scale_per_octet),
        "WHOLE_LINES": float(matrix.columns % (8 * known["OCTETS"]) == 0),
    }
    if target.wide:
        return OneLineVariant(
            kernel, {**weight, "lanes": target.lanes_by}, known["PAIRS"], constants
        )
    block = "shared" if target.lanes >= SHARING_LANES else "alone"
    pairs = known["WORKGROUP"] * known["PAIRS"]
    return OneLineVariant(kernel, {**weight, "block": block}, pairs, constants)


def by_limbs(matrix: Matrix, limits: Mapping[str, int]) -> OneLineVariant:
    """Weights in blocks, multiplied as whole numbers."""
    geometry = limb_geometry(matrix, limits)
    constants = {
        "WHOLE_LINES": 1.0,
        "WORKGROUP": geometry.workgroup,
        "BESIDE": geometry.beside,
        "GROUP_PAIRS": geometry.group_pairs,
        "STEPS": geometry.steps,
        "TILE": geometry.tile(matrix.columns // BLOCK),
    }
    return OneLineVariant(GEMV_LIMBS, {"blocks": matrix.kind}, geometry.group_pairs, constants)


class ManyLines:
    """A matrix product in tiles, after the norm of x."""

    def __init__(
        self,
        op: Op,
        x: Bindable,
        max_lines: int,
        matrix: Matrix,
        finish: Finish,
        norm: Norm | None,
        known: "dict[str, Lines]",
    ) -> None:
        self.finish = finish
        self.prepare = prepared(op, x, max_lines, matrix, norm, known)
        self.gemms = {
            tiling: op.launch(
                tiling.kernel,
                plugs={**finish.plugs, **tiling.plugs, **tiling.weight_plugs(matrix)},
                bind={**finish.bind, **matrix.bind, "x": self.prepare.lines},
                constants=tiling.constants,
            )
            for tiling in tilings_for(matrix, op.builder.target, op.builder.limits)
        }

    def __call__(self, lines: int, eps: float, shared: Mapping[str, object]) -> None:
        self.prepare(lines, eps)
        pairs = self.finish.pairs
        *larger, chosen = self.gemms
        for tiling in reversed(larger):
            if tiling.count(lines, pairs) >= ENOUGH_SQUARES:
                chosen = tiling
        for tiling, gemm in self.gemms.items():
            if tiling is not chosen:
                gemm.skip()
        groups = ceil_div(chosen.count(lines, pairs), chosen.tiles)
        self.gemms[chosen](groups, count=lines, pairs=pairs, **self.finish.fields, **shared)

    def skip(self) -> None:
        self.prepare.skip()
        for gemm in self.gemms.values():
            gemm.skip()


class NormalisedLines:
    """Lines of x as they are, or normalised where there is a norm."""

    def __init__(
        self, op: Op, x: Bindable, max_lines: int, matrix: Matrix, norm: LiveTensor | None
    ) -> None:
        self.columns = matrix.columns
        self.lines = x
        self.normalise: RmsNormKernel | None = None
        if norm is not None:
            self.lines = op.scratch("normalised x", max_lines * matrix.columns * 4)
            self.normalise = RmsNormKernel(op, x, norm, self.lines)

    def __call__(self, lines: int, eps: float) -> None:
        if self.normalise is not None:
            self.normalise(lines, self.columns, eps)

    def skip(self) -> None:
        if self.normalise is not None:
            self.normalise.skip()


Lines = CutLines | NormalisedLines


def prepared(
    op: Op,
    x: Bindable,
    max_lines: int,
    matrix: Matrix,
    norm: Norm | None,
    known: dict[str, Lines],
) -> Lines:
    """Lines of x as a matrix wants them; matrices that want the same have them together."""
    weight = norm.weight if norm is not None else None
    by_limbs = goes_by_limbs(matrix, op.builder.target)
    key = f"paired {is_paired(matrix)}" if by_limbs else ""
    if key not in known:
        prepare = CutLines if by_limbs else NormalisedLines
        known[key] = prepare(op, x, max_lines, matrix, weight)
    return known[key]
