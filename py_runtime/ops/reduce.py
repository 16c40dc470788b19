"""Sums, means and extremes over any dims."""

from dataclasses import dataclass

from py_runtime.base.dtypes import BOOL, F32, I32, I64, DType
from py_runtime.base.shapes import Dims, normalise_dim, numel
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Launch, Scratch
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.cut_rows import part_count, rows_along
from py_runtime.ops.registry import Op, register

FUNCTIONS = {"sum": "SUM", "mean": "SUM", "amax": "MAXIMUM", "amin": "MINIMUM"}


@dataclass(frozen=True)
class Pass:
    """One launch: neighbouring dims become `parts` elements, then at last one."""

    first: int
    last: int
    parts: int  # at most
    launch: Launch


class Reduce(Op):
    """Neighbouring dims are reduced together; dims apart, and long rows, take several passes."""

    def declare(self, *dtypes: DType) -> None:
        self.x = self.tensor("x", *dtypes)
        name = self.name.split(".")[1]
        self.is_mean = name == "mean"
        self.keepdim = self.boolean("keepdim")
        results = (F32,) if self.x.dtype is F32 else (I32, I64)
        self.reduced = self.take_dims()
        rank = self.x.rank if self.keepdim else self.x.rank - len(self.reduced)
        self.out = self.tensor("out", *results, rank=rank)
        self.passes = self.plan_passes(figures_of("reduce/reduce")[FUNCTIONS[name]])

    def take_dims(self) -> list[int]:
        """No dims means all of them, as in torch."""
        given = self.int_list("dims") if self.has("dims") else []
        dims = sorted(normalise_dim(dim, self.x.rank) for dim in given)
        self.require(len(set(dims)) == len(dims), f"dims {given} name a dim twice")
        return dims or list(range(self.x.rank))

    def plan_passes(self, code: int) -> list[Pass]:
        shape = list(self.x.max_dims)
        steps: list[tuple[int, int, int]] = []  # first dim, last dim, parts
        for first, last in reversed(neighbours(self.reduced)):
            parts = part_count(rows_along(shape, first, last).width)
            steps += [(first, last, parts), (first, last, 1)] if parts > 1 else [(first, last, 1)]
        element = "f32" if self.x.dtype is F32 else "i32"
        source: LiveTensor | Scratch = self.x
        passes = []
        for number, (first, last, parts) in enumerate(steps):
            rows = rows_along(shape, first, last)
            shape = collapse(shape, first, last, parts)
            destination: LiveTensor | Scratch = self.out
            if number < len(steps) - 1:
                destination = self.scratch(f"pass {number}", 4 * rows.count * parts)
            launch = self.launch(
                "reduce/reduce",
                plugs={"element": element},
                bind={"x": source, "out": destination},
                constants={"CODE": code},
            )
            passes.append(Pass(first, last, parts, launch))
            source = destination
        return passes

    def live(self) -> None:
        self.out.resize(self.out_dims())
        shape = list(self.x.dims)
        for step in self.passes:
            rows = rows_along(shape, step.first, step.last)
            parts = min(step.parts, rows.width)
            shape = collapse(shape, step.first, step.last, parts)
            is_last = step is self.passes[-1]
            reduced = numel(self.x.dims[axis] for axis in self.reduced)
            step.launch.for_each(
                rows.count * parts,
                count=rows.count * parts,
                width=rows.width,
                inner=rows.inner,
                parts=parts,
                scale=1.0 / reduced if self.is_mean and is_last else 1.0,
            )

    def out_dims(self) -> Dims:
        if self.keepdim:
            return tuple(
                1 if axis in self.reduced else size for axis, size in enumerate(self.x.dims)
            )
        return tuple(size for axis, size in enumerate(self.x.dims) if axis not in self.reduced)


def neighbours(dims: list[int]) -> list[tuple[int, int]]:
    """Sorted dims as runs (first, last); none at all is the one row of a rank 0 tensor."""
    runs: list[tuple[int, int]] = []
    for dim in dims:
        if runs and runs[-1][1] == dim - 1:
            runs[-1] = (runs[-1][0], dim)
        else:
            runs.append((dim, dim))
    return runs or [(0, 0)]


def collapse(shape: list[int], first: int, last: int, parts: int) -> list[int]:
    """Return the shape with the dims first..last replaced by `parts` and ones after it."""
    return [*shape[:first], parts, *[1] * (last - first), *shape[last + 1 :]]


@register("aten.sum.dim_IntList", args="x dims keepdim dtype out")
class Sum(Reduce):
    """out: sums over dims; integers and bools give integers."""

    def build(self) -> None:
        self.declare(F32, I32, I64, BOOL)


@register("aten.mean.dim", args="x dims keepdim dtype out")
class Mean(Reduce):
    """out: f32, means over dims."""

    def build(self) -> None:
        self.declare(F32)


@register("aten.amax.default", "aten.amin.default", args="x dims keepdim out")
class Extreme(Reduce):
    """out: the largest or least over dims."""

    def build(self) -> None:
        self.declare(F32, I32, I64)
