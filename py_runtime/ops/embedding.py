"""Embedding tables of every kind. Indices outside a table read its first or last row."""

from py_runtime.base.dtypes import F32, I32, I64, U8
from py_runtime.base.shapes import numel
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.matrices import block_columns, octet_plugs, rows_at_once
from py_runtime.ops.registry import Op, register
from py_runtime.program.weight_kinds import BLOCK, BLOCK_KINDS, Q4GSW


class Embedding(Op):
    """A lookup in a table of any kind: indices in, rows out."""

    def take_common_arguments(self, columns: int) -> None:
        """Take the arguments that every embedding has: the indices and the output."""
        self.columns = columns
        self.indices = self.tensor("indices", I32, I64)
        self.out = self.tensor("out", F32)  # [*indices, columns]
        self.require(
            self.out.rank == self.indices.rank + 1 and self.out.max_dims[-1] == columns,
            f"out is {list(self.out.max_dims)}; it must be the dims of the indices with {columns} "
            "at the end",
        )

    def resize_out(self) -> int:
        """Resize the output to the live indices and return their number."""
        self.out.resize((*self.indices.dims, self.columns))
        return numel(self.indices.dims)


@register("aten.embedding.default", args="weight indices padding_idx scale_grad sparse out")
class EmbeddingF32(Embedding):
    """The arguments between indices and out concern training alone."""

    def build(self) -> None:
        self.weight = self.tensor("weight", F32, rank=2)
        self.take_common_arguments(self.weight.max_dims[1])
        self.gather = self.launch(
            "copies/embedding",
            bind={"weight": self.weight, "indices": self.indices, "out": self.out},
        )

    def live(self) -> None:
        rows, columns = self.weight.dims
        self.require_live(columns == self.columns, f"the table has {columns} live columns")
        count = self.resize_out()
        self.gather.for_each(count * columns, count=count, rows=rows, columns=columns)


class QuantisedEmbedding(Embedding):
    """Rows are dequantised as they are read."""

    def declare(
        self,
        kind: str,
        weight: LiveTensor,
        scales: LiveTensor | None,
        group_size: int,
        constants: dict[str, float] | None = None,
    ) -> None:
        table = {"weight": weight} | ({} if scales is None else {"scales": scales})
        self.table, self.group_size = tuple(table.values()), group_size
        self.rows = weight.max_dims[0]
        self.rows_at_once = rows_at_once(self, self.table, self.rows)
        slices = [dict[str, Bindable](table)]
        if self.rows_at_once < self.rows:
            cut = {name: self.cut(part, self.rows_at_once) for name, part in table.items()}
            slices = [dict(zip(cut, own, strict=True)) for own in zip(*cut.values(), strict=True)]
        self.gathers = [
            self.launch(
                "copies/embedding_quantised",
                plugs=octet_plugs(kind),
                bind={**weight_slice, "indices": self.indices, "out": self.out},
                constants=constants,
            )
            for weight_slice in slices
        ]

    def live(self) -> None:
        for part in self.table:
            self.require_live(part.dims == part.max_dims, f"{part.label} cannot be resized")
        count, octets = self.resize_out(), self.columns // 8
        for number, gather in enumerate(self.gathers):
            first_row = number * self.rows_at_once
            gather.for_each(
                count * octets,
                count=count,
                rows=self.rows,
                first_row=first_row,
                bound_rows=min(self.rows_at_once, self.rows - first_row),
                octets=octets,
                quads=2 * octets,
                octets_per_group=self.group_size // 8,
                row_groups=self.columns // self.group_size,
            )


@register("et_vk.embedding_q4gsw.default", args="weight scales group_size indices is_linear out")
class EmbeddingQ4gsw(QuantisedEmbedding):
    """weight: u8 [V, E / 2]; scales: f32 [V, groups], unlike those of the linear."""

    def build(self) -> None:
        weight = self.tensor("weight", U8, rank=2)
        scales = self.tensor("scales", F32, rank=2)
        group_size = self.integer("group_size")
        rows, columns = weight.max_dims[0], weight.max_dims[1] * 2
        self.require(columns % 8 == 0, f"rows of {columns} columns; E must be a multiple of 8")
        self.require(
            group_size > 0 and group_size % 8 == 0 and columns % group_size == 0,
            f"groups of {group_size}; they must be a multiple of 8 that divides {columns}",
        )
        self.require(
            scales.max_dims == (rows, columns // group_size),
            f"scales are {list(scales.max_dims)}; groups of {group_size} in a table of [{rows}, "
            f"{columns}] need [{rows}, {columns // group_size}]",
        )
        self.take_common_arguments(columns)
        high_first = not self.boolean("is_linear")
        self.declare(Q4GSW, weight, scales, group_size, {"HIGH_FIRST": float(high_first)})


class BlockEmbedding(QuantisedEmbedding):
    """An embedding on the constants of the linear of the same kind: a tied head costs no memory."""

    def build(self) -> None:
        kind = BY_OP[self.name]
        weight = self.tensor("weight", kind.dtype, rank=2)
        scales = self.tensor("scales", kind.scale_dtype) if kind.has_scales else None
        columns = block_columns(self, kind, weight, scales, "table")
        self.require(columns % 8 == 0, f"rows of {columns} columns; E must be a multiple of 8")
        self.take_common_arguments(columns)
        self.declare(kind.name, weight, scales, BLOCK)


BY_OP = {kind.embedding: kind for kind in BLOCK_KINDS.values()}
for _name, _kind in BY_OP.items():
    _scales = "scales " if _kind.has_scales else ""
    register(_name, args=f"weight {_scales}indices out")(BlockEmbedding)
