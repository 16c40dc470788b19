"""The kernels of linears, and of what is fused with them.

A kernel says how x is shared out among invocations. It has slots for fragments that know one thing
each: how the weight is stored (shaders/shared/weights), and what becomes of the sums (a "finish").
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from py_runtime.base.shapes import ceil_div, numel
from py_runtime.gpu.kernel_sources import kernel_source
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.gpu.second_copies import SECOND
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.ops.kernels.limb_products import (
    GEMV_LIMBS,
    MIXED_LIMBS,
    CutLines,
    goes_by_limbs,
    is_paired,
    limb_geometry,
)
from py_runtime.ops.kernels.matrices import Matrices, Matrix, rows_of
from py_runtime.ops.kernels.norms import RmsNormKernel
from py_runtime.ops.kernels.tilings import SHARING_LANES, tilings_for
from py_runtime.ops.registry import Op
from py_runtime.program.weight_kinds import BLOCK, Q4GSW

GEMV, GEMV_WIDE = "linear/gemv", "linear/gemv_wide"


ENOUGH_SQUARES = 264  # of 64, two for each core of a large device: fewer leave it idle


@dataclass(frozen=True)
class Finish:
    """What becomes of the sums: fragments, and what they bind beside x and the weight."""

    plugs: Mapping[str, str]
    bind: Mapping[str, Bindable]
    pairs: int  # of rows, as the shader pairs them
    fields: Mapping[str, object]  # its own parameters
    start: str = "first_row"  # the parameter that says where a matrix begins
    start_rows: int = 1  # and how many rows it counts as one

    def of(self, matrices: Matrices) -> "Finish":
        """For some of several matrices."""
        fields = {**self.fields, self.start: matrices[0].first_row // self.start_rows}
        if "rows" in fields:
            fields["rows"] = rows_of(matrices)
        return replace(self, pairs=ceil_div(rows_of(matrices), 2), fields=fields)


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
    plugs = {"finish": "rows", "each": "residual"}
    return Finish(plugs, bind, ceil_div(rows, 2), {**places, **has})


def into_sums(x: LiveTensor, rows: int, out: Bindable, bias: Bindable | None) -> Finish:
    """The same, by kernels that bind one buffer less."""
    places = {"rows": rows, "first_row": 0, "stride": rows, "has_bias": bias is not None}
    bind = {"out": out, "bias": bias or x}
    return Finish({"finish": "rows", "each": "bias"}, bind, ceil_div(rows, 2), places)


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
    """One kernel for one line of x, or a few where kinds of weights differ, and others for many, a
    set of them for each matrix; x may be computed and normalised on the way.

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
        plain = RowOfX.plain(source or x)
        row = plain if summed is None else RowOfX.summed(summed, x)
        self.one: list[OneLine] = []
        left = matrices
        while left:
            count = 2 if can_be_mixed(op, left[:2], row, finish) else 1
            end = finish if len(matrices) == 1 else finish.of(left[:count])
            self.one.append(OneLine(op, row, left[:count], end, norm))
            left, row = left[count:], plain  # the first kernel leaves x for the others
        self.many: list[ManyLines] = []
        known: dict[str, Lines] = {}
        for matrix in matrices if max_lines > 1 else ():
            end = many or finish
            end = end if len(matrices) == 1 else end.of((matrix,))
            self.many.append(ManyLines(op, source or x, max_lines, matrix, end, norm, known))

    def __call__(self, lines: int) -> None:
        for tensor in self.tensors:
            if tensor.dims != tensor.max_dims:
                self.op.require_live(False, f"{tensor.label} cannot be resized")
        if self.sum_up is not None and self.summed is not None:
            if lines == 1:
                self.sum_up.skip()
            else:
                self.sum_up(lines, self.columns, self.summed.norm.eps)
        if lines == 1 or not self.many:
            for many in self.many:
                many.skip()
            for one in self.one:
                one()
        else:
            for one in self.one:
                one.skip()
            for many in self.many:
                many(lines)

    def skip(self) -> None:
        """Of ops whose x is never a sum."""
        for one in self.one:
            one.skip()
        for many in self.many:
            many.skip()


class OneLine:
    """A matrix-vector product; the norm of x costs no kernel of its own, nor does the sum it is.

    Of one matrix, or of two that can_be_mixed.
    """

    def __init__(
        self, op: Op, row: "RowOfX", matrices: Matrices, finish: Finish, norm: Norm | None = None
    ) -> None:
        self.finish = finish
        self.shared = {**matrices[0].fields, "eps": norm.eps if norm is not None else 0.0}
        # Without a norm something that is read, and large enough, stands in its place.
        weight = norm.weight if norm is not None else next(iter(row.bind.values()))
        variant = one_line_variant(matrices, op.builder.target, op.builder.limits)
        self.group_pairs = variant.pairs
        self.gemv = op.launch(
            variant.kernel,
            plugs={**finish.plugs, **variant.plugs, **row.plugs},
            bind={**finish.bind, **bound(matrices), **row.bind, "norm": weight},
            constants={**variant.constants, **row.constants, "NORMED": float(norm is not None)},
        )

    def __call__(self) -> None:
        pairs = self.finish.pairs
        groups = ceil_div(pairs, self.group_pairs)
        self.gemv(groups, count=1, pairs=pairs, **self.finish.fields, **self.shared)

    def skip(self) -> None:
        self.gemv.skip()


def bound(matrices: Matrices) -> dict[str, Bindable]:
    """By the names in a kernel of one matrix, or of two."""
    endings = ("", SECOND)[: len(matrices)]
    return {
        name + ending: resource
        for matrix, ending in zip(matrices, endings, strict=True)
        for name, resource in matrix.bind.items()
    }


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
    matrices: Matrices, target: KernelTarget, limits: Mapping[str, int]
) -> OneLineVariant:
    """The kernel for one line of x (a token), by the matrix's shape and what the GPU has."""
    matrix = matrices[0]
    if goes_by_limbs(matrix, target):
        return by_limbs(matrices, limits)
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


def one_line_buffers(plugs: Mapping[str, str]) -> int:
    """Storage buffers that a kernel for one line of x binds with these, and weights with scales."""
    return kernel_source(GEMV, {"weight": Q4GSW, "block": "alone", **plugs}).storage_buffers


def by_limbs(matrices: Matrices, limits: Mapping[str, int]) -> OneLineVariant:
    """Weights in blocks, multiplied as whole numbers."""
    geometry = limb_geometry(as_one(matrices), limits)
    constants = {
        "WHOLE_LINES": 1.0,
        "WORKGROUP": geometry.workgroup,
        "BESIDE": geometry.beside,
        "GROUP_PAIRS": geometry.group_pairs,
        "STEPS": geometry.steps,
        "AHEAD": float(geometry.ahead),
        "TILE": geometry.tile(matrices[0].columns // BLOCK),
    }
    plugs = {"blocks": matrices[0].kind}
    if len(matrices) == 1:
        return OneLineVariant(GEMV_LIMBS, plugs, geometry.group_pairs, constants)
    plugs |= {f"blocks{SECOND}": matrices[1].kind}
    constants |= {"FIRST_PAIRS": matrices[0].rows // 2}
    return OneLineVariant(MIXED_LIMBS, plugs, geometry.group_pairs, constants)


def as_one(matrices: Matrices) -> Matrix:
    """Their shape."""
    return replace(matrices[0], part_rows=tuple(matrix.rows for matrix in matrices))


def can_be_mixed(op: Op, matrices: Matrices, row: RowOfX, finish: Finish) -> bool:
    """Whether two matrices of different kinds are one kernel's for one line of x: it binds the
    weights of both, and each workgroup has rows of one."""
    if len(matrices) != 2 or not all(goes_by_limbs(each, op.builder.target) for each in matrices):
        return False
    first, second = matrices
    resources = (*finish.bind.values(), *row.bind.values(), *bound(matrices).values())
    buffers = 1 + sum(not isinstance(resource, LiveInt) for resource in resources)  # and the norm
    return (
        first.kind != second.kind
        and first.fields == second.fields
        and first.rows % (2 * by_limbs(matrices, op.builder.limits).pairs) == 0
        and buffers <= op.builder.target.storage_buffers
    )


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
        self.eps = norm.eps if norm is not None else 0.0
        self.shared = {**matrix.fields, "eps": self.eps}
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

    def __call__(self, lines: int) -> None:
        self.prepare(lines, self.eps)
        pairs = self.finish.pairs
        *larger, chosen = self.gemms
        for tiling in reversed(larger):
            if tiling.count(lines, pairs) >= ENOUGH_SQUARES:
                chosen = tiling
        for tiling, gemm in self.gemms.items():
            if tiling is not chosen:
                gemm.skip()
        groups = ceil_div(chosen.count(lines, pairs), chosen.tiles)
        self.gemms[chosen](groups, count=lines, pairs=pairs, **self.finish.fields, **self.shared)

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
