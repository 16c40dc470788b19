"""argmax and argmin: where the extreme stands, the first one on ties."""

from py_runtime.base.dtypes import F32, I32, I64
from py_runtime.base.shapes import normalise_dim
from py_runtime.ops.kernels.cut_rows import Rows, part_count, rows_along
from py_runtime.ops.registry import Op, register


@register("aten.argmax.default", "aten.argmin.default", args="x dim keepdim out")
class ArgReduce(Op):
    """out: where x is largest or least along dim, the dim dropped or 1; without one, of all."""

    def build(self) -> None:
        self.x = self.tensor("x", F32, I32, I64)
        self.dim = normalise_dim(self.integer("dim"), self.x.rank) if self.has("dim") else None
        self.keepdim = self.boolean("keepdim")
        dropped = self.x.rank if self.dim is None else 1
        rank = self.x.rank if self.keepdim else self.x.rank - dropped
        self.out = self.tensor("out", I32, I64, rank=rank)
        most = self.rows(self.x.max_dims)
        self.parts = part_count(most.width)
        constants = {"IS_MIN": int("argmin" in self.name), "SECOND_PASS": 0}
        plugs = {"element": "f32" if self.x.dtype is F32 else "i32"}
        if self.parts == 1:
            bind = {"x": self.x, "found": self.x, "out": self.out}
            self.find = self.launch(
                "reduce/arg_reduce", plugs=plugs, bind=bind, constants=constants
            )
            self.choose = None
            return
        found = self.scratch("found", 4 * most.count * self.parts)
        self.find = self.launch(
            "reduce/arg_reduce",
            plugs=plugs,
            bind={"x": self.x, "found": self.x, "out": found},
            constants=constants,
        )
        self.choose = self.launch(
            "reduce/arg_reduce",
            plugs=plugs,
            bind={"x": self.x, "found": found, "out": self.out},
            constants=constants | {"SECOND_PASS": 1},
        )

    def rows(self, dims: tuple[int, ...]) -> Rows:
        """Return the rows to reduce; without a dim the whole tensor is one row."""
        if self.dim is None:
            return rows_along(dims, 0, len(dims) - 1)
        return rows_along(dims, self.dim, self.dim)

    def live(self) -> None:
        rows = self.rows(self.x.dims)
        if self.dim is None:
            self.out.resize((1,) * self.out.rank)
        else:
            middle = (1,) if self.keepdim else ()
            self.out.resize((*self.x.dims[: self.dim], *middle, *self.x.dims[self.dim + 1 :]))
        parts = min(self.parts, rows.width)
        self.find.for_each(
            rows.count * parts,
            count=rows.count * parts,
            width=rows.width,
            inner=rows.inner,
            parts=parts,
            given=0,
        )
        if self.choose is not None:
            self.choose.for_each(
                rows.count,
                count=rows.count,
                width=rows.width,
                inner=rows.inner,
                parts=1,
                given=parts,
            )
