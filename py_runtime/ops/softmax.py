"""_softmax and _log_softmax over any dim; long rows are shared by several invocations."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import normalise_dim
from py_runtime.ops.kernels.cut_rows import Rows, part_count, rows_along
from py_runtime.ops.registry import Op, register


@register("aten._softmax.default", "aten._log_softmax.default", args="x dim half_to_float out")
class Softmax(Op):
    """out = exp(x - max) / sum(exp(x - max)) along dim, or its logarithm."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.out = self.tensor("out", F32, rank=self.x.rank)
        self.dim = normalise_dim(self.integer("dim"), self.x.rank)
        self.require(not self.boolean("half_to_float"), "half_to_float is set; x is f32 already")
        most = self.rows(self.x.max_dims)
        self.parts = part_count(most.width)
        is_log = {"IS_LOG": int("log_softmax" in self.name)}
        if self.parts == 1:
            self.whole_rows = self.launch(
                "reduce/softmax", bind={"x": self.x, "out": self.out}, constants=is_log
            )
            return
        parts = self.scratch("parts", 8 * most.count * self.parts)  # two f32 each
        stats = self.scratch("stats", 8 * most.count)
        self.part_stats = self.launch(
            "reduce/softmax_stats", bind={"x": self.x, "stats": parts}, constants={"SECOND_PASS": 0}
        )
        self.row_stats = self.launch(
            "reduce/softmax_stats", bind={"x": parts, "stats": stats}, constants={"SECOND_PASS": 1}
        )
        self.scale = self.launch(
            "reduce/softmax_scale",
            bind={"x": self.x, "stats": stats, "out": self.out},
            constants=is_log,
        )

    def rows(self, dims: tuple[int, ...]) -> Rows:
        return rows_along(dims, self.dim, self.dim)

    def live(self) -> None:
        self.out.resize(self.x.dims)
        rows = self.rows(self.x.dims)
        count, width, inner = rows.count, rows.width, rows.inner
        if self.parts == 1:
            self.whole_rows.for_each(count, count=count, width=width, inner=inner)
            return
        parts = min(self.parts, width)
        self.part_stats.for_each(
            count * parts,
            count=count * parts,
            width=width,
            inner=inner,
            parts=parts,
        )
        self.row_stats.for_each(count, count=count, width=parts, inner=inner, parts=1)
        self.scale.for_each(count * width, count=count * width, width=width, inner=inner)
