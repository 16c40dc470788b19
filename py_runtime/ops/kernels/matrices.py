"""Weights of linears as kernels see them: every kind behind one interface.

Several weights of one kind and width are joined into one matrix, so that what an op computes from
the same x (q, k and v; gate and up) takes one kernel. Where kinds differ, or where a weight is
larger than a kernel can bind, an op has several matrices, one below the other; for one token two of
different kinds may still share a kernel (see gemv.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from py_runtime.base.dtypes import F32, U8
from py_runtime.base.shapes import Dims, ceil_div
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.gpu.shader_sources import all_shaders
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.registry import Op
from py_runtime.program.weight_kinds import (
    BLOCK,
    BLOCK_KINDS,
    FLOAT,
    Q4GSW,
    BlockKind,
    q4gsw_row_bytes,
)

MAX_PARTS = figures_of("linear/fragments/io")["MAX_PARTS"]
NO_END = 2**32 - 1
BY_BLOCKS = all_shaders().alternatives("shared/weights/blocks_")  # kinds of weights
BY_OCTETS = all_shaders().alternatives("shared/weights/octets_")


@dataclass(frozen=True)
class Weight:
    """A weight as an op's arguments give it."""

    kind: str  # a file shared/weights/octets_*.wgsl or blocks_*.wgsl
    weight: LiveTensor
    scales: LiveTensor | None = None
    group_size: int = BLOCK  # columns that share a scale; fixed but for q4gsw


@dataclass(frozen=True)
class Matrix:
    """Weights of one kind, one after the other: [rows, columns]."""

    kind: str
    part_rows: tuple[int, ...]
    columns: int
    tensors: tuple[LiveTensor, ...]
    bind: dict[str, Bindable]
    scale_per_octet: bool
    whole_blocks: bool  # rows are whole blocks that a file blocks_* knows
    fields: dict[str, object]  # parameters every linear kernel has
    first_row: int = 0  # of all that the op computes

    @property
    def rows(self) -> int:
        return sum(self.part_rows)

    @property
    def octet_plugs(self) -> dict[str, str]:
        """The plugs of a kernel that takes eight columns at a time."""
        return octet_plugs(self.kind)


def octet_plugs(kind: str) -> dict[str, str]:
    """Return the plugs that read octets of a kind: a file of its own, or its blocks."""
    return {"weight": kind} if kind in BY_OCTETS else {"weight": "blocks", "blocks": kind}


Matrices = tuple[Matrix, ...]  # one below the other


def rows_of(matrices: Matrices) -> int:
    """Return the rows of all matrices."""
    return sum(matrix.rows for matrix in matrices)


def part_rows(matrices: Matrices) -> tuple[int, ...]:
    """Return the rows of each weight."""
    by_tensor: dict[int, int] = {}
    for matrix in matrices:
        for tensor, rows in zip(matrix.tensors, matrix.part_rows, strict=False):
            by_tensor[tensor.id] = by_tensor.get(tensor.id, 0) + rows
    return tuple(by_tensor.values())


def matrices_of(op: Op, weights: Sequence[Weight], columns: int) -> Matrices:
    """Check the weights against the columns of x, and join neighbours of one kind."""
    op.require(
        1 <= len(weights) <= MAX_PARTS, f"{len(weights)} weights; up to {MAX_PARTS} are taken"
    )
    for weight in weights:
        op.require(weight.kind in CHECKS, f"weights of the unknown kind '{weight.kind}'")
        _check_ranks(op, weight)
        CHECKS[weight.kind](op, weight, columns)
        op.require(weight.group_size > 0, f"groups of {weight.group_size} columns")
    found: list[Matrix] = []
    first_row = 0
    for _, alike in groupby(weights, key=lambda weight: (weight.kind, weight.group_size)):
        matrix = replace(_joined(op, list(alike), columns), first_row=first_row)
        found += _cut(op, matrix)
        first_row += matrix.rows
    return tuple(found)


CUT_ROWS = 64  # slices have a multiple of so many rows


def rows_at_once(op: Op, tensors: Sequence[LiveTensor], rows: int) -> int:
    """Return how many of a matrix's rows a kernel can bind; all where it need not be cut."""
    most = op.builder.target.binding_bytes
    largest = max(tensor.max_bytes for tensor in tensors)
    if largest <= most:
        return rows
    return max(most * rows // largest // CUT_ROWS, 1) * CUT_ROWS


def _cut(op: Op, matrix: Matrix) -> list[Matrix]:
    """Cut a matrix into rows that can be bound; scales of q4gsw and channels lie across rows."""
    can_be_cut = matrix.kind in BLOCK_KINDS or matrix.kind == FLOAT
    rows = rows_at_once(op, matrix.tensors, matrix.rows)
    if rows >= matrix.rows or not can_be_cut or len(matrix.part_rows) > 1:
        return [matrix]
    by_name = zip(matrix.bind, matrix.tensors, strict=True)
    slices = {name: op.cut(tensor, rows) for name, tensor in by_name}
    starts = range(0, matrix.rows, rows)
    return [
        replace(
            matrix,
            part_rows=(min(rows, matrix.rows - start),),
            bind={name: own[at] for name, own in slices.items()},
            first_row=matrix.first_row + start,
        )
        for at, start in enumerate(starts)
    ]


def _joined(op: Op, weights: Sequence[Weight], columns: int) -> Matrix:
    first = weights[0]
    bind: dict[str, Bindable] = {"weight": op.join([weight.weight for weight in weights])}
    scales = [weight.scales for weight in weights if weight.scales is not None]
    if scales:
        bind["scales"] = op.join(scales)
    part_rows = tuple(weight.weight.max_dims[0] for weight in weights)
    groups = ceil_div(columns, first.group_size)
    small_groups = first.kind == Q4GSW and groups > 1 and first.group_size % BLOCK != 0
    has_halves = first.kind in BLOCK_KINDS and BLOCK_KINDS[first.kind].halves > 1
    return Matrix(
        first.kind,
        part_rows,
        columns,
        (*(weight.weight for weight in weights), *scales),
        bind,
        small_groups or has_halves,
        first.kind in BY_BLOCKS and columns % BLOCK == 0 and not small_groups,
        {
            **_row_scales(part_rows, scales if first.kind == Q4GSW else []),
            "quads": columns // 4,
            "octets": ceil_div(columns, 8),
            "octets_per_group": ceil_div(first.group_size, 8),
        },
    )


def _row_scales(part_rows: tuple[int, ...], scales: Sequence[LiveTensor]) -> dict[str, object]:
    """Return the parameters of row_scales in shaders/linear; scales: [groups, padded rows]."""
    ends, offsets, strides = [], [], []
    row = place = 0
    for rows, scale in zip(part_rows, scales, strict=False):
        groups, padded_rows = scale.max_dims[:2]
        offsets.append(place - row)  # the row itself is added
        strides.append(padded_rows)
        row += rows
        place += groups * padded_rows
        ends.append(row)
    ends[-1:] = [NO_END]
    return {
        "part_ends": _padded(ends, NO_END),
        "part_offsets": _padded(offsets, 0),
        "part_strides": _padded(strides, 0),
    }


def _padded(entries: list[int], fill: int) -> tuple[int, ...]:
    return tuple(entries + [fill] * (4 - len(entries)))


def _check_ranks(op: Op, weight: Weight) -> None:
    """Check that scales have the dtype and rank of their kind; floats have none."""
    dims = list(weight.weight.max_dims)
    op.require(len(dims) == 2, f"a weight of {dims}; it must be [rows, columns]")
    if weight.kind == FLOAT or (
        weight.kind in BLOCK_KINDS and not BLOCK_KINDS[weight.kind].has_scales
    ):
        op.require(weight.scales is None, f"weights of the kind {weight.kind} with scales")
        return
    scales = weight.scales
    op.require(scales is not None, f"weights of the kind {weight.kind} without scales")
    assert scales is not None
    if weight.kind not in BLOCK_KINDS:
        rank = 2 if weight.kind == Q4GSW else 1
        op.require(
            scales.dtype is F32 and scales.rank == rank,
            f"scales are {scales.dtype.name} {list(scales.max_dims)}; the kind {weight.kind} has "
            f"f32 of rank {rank}",
        )


def check_f32(op: Op, weight: Weight, columns: int) -> None:
    """weight: f32 [rows, columns], columns a multiple of 4."""
    dims = weight.weight.max_dims
    op.require(
        weight.weight.dtype is F32 and len(dims) == 2 and dims[1] == columns and columns % 4 == 0,
        f"a weight of {list(dims)} does not fit {columns} columns, a multiple of 4",
    )


def check_q4gsw(op: Op, weight: Weight, columns: int) -> None:
    """weight: u8 [N, ceil(K / 8) * 4]; scales: f32 [groups, N or more]."""
    assert weight.scales is not None
    rows, row_bytes = weight.weight.max_dims
    group_size = weight.group_size
    op.require(columns % 4 == 0, f"rows of {columns} columns; K must be a multiple of 4")
    op.require(
        weight.weight.dtype is U8 and row_bytes == q4gsw_row_bytes(columns),
        f"weight rows of {row_bytes} bytes; {columns} columns take {q4gsw_row_bytes(columns)}",
    )
    op.require(
        group_size >= columns or (group_size > 0 and group_size % 8 == 0),
        f"groups of {group_size}; they must be a multiple of 8, or all {columns} columns",
    )
    groups, padded_rows = weight.scales.max_dims
    op.require(
        groups == ceil_div(columns, group_size) and padded_rows >= rows,
        f"scales are {list(weight.scales.max_dims)}; groups of {group_size} in a weight of "
        f"[{rows}, {columns}] need [{ceil_div(columns, group_size)}, {rows} or more]",
    )


def check_channels(op: Op, weight: Weight, columns: int) -> None:
    """Check a weight u8 [N, K / 2] or i8 [N, K]; scales: f32 [N or more]."""
    assert weight.scales is not None
    rows, row_bytes = weight.weight.max_dims
    wanted = columns // 2 if weight.weight.dtype is U8 else columns
    op.require(columns % 4 == 0, f"rows of {columns} columns; K must be a multiple of 4")
    op.require(
        row_bytes == wanted, f"weight rows of {row_bytes} bytes; {columns} columns take {wanted}"
    )
    op.require(
        weight.scales.max_dims[0] >= rows,
        f"scales are {list(weight.scales.max_dims)}; a weight of {rows} rows needs one each",
    )


def check_blocks(op: Op, weight: Weight, columns: int) -> None:
    """Check a weight [N, K / columns per element] and the scales of its blocks."""
    own_columns = block_columns(op, BLOCK_KINDS[weight.kind], weight.weight, weight.scales)
    op.require(
        own_columns == columns,
        f"x of {columns} columns does not fit weights of {own_columns} columns",
    )


def block_columns(
    op: Op, kind: BlockKind, weight: LiveTensor, scales: LiveTensor | None, what: str = "weight"
) -> int:
    """Return the columns of a weight, or of a table, after checking that its scales fit."""
    rows, columns = weight.max_dims[0], kind.columns(weight.max_dims[1])
    op.require(
        columns % kind.block == 0 and weight.max_dims == kind.weight_dims(rows, columns),
        f"rows of {columns} columns; K must be a multiple of {kind.block}",
    )
    dims = None if scales is None else scales.max_dims
    wanted = kind.scale_dims(rows, columns) if kind.has_scales else None
    op.require(
        weight.dtype is kind.dtype
        and dims == wanted
        and (scales is None or scales.dtype is kind.scale_dtype),
        f"scales are {_shown(dims)}; a {what} of [{rows}, {columns}] needs {_shown(wanted)}",
    )
    return columns


def _shown(dims: Dims | None) -> str:
    return "none" if dims is None else str(list(dims))


CHECKS = {
    FLOAT: check_f32,
    Q4GSW: check_q4gsw,
    "qcs4w": check_channels,
    "qcs8w": check_channels,
    **dict.fromkeys(BLOCK_KINDS, check_blocks),
}
