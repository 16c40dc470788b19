"""Parts of a tensor along one dim: select, slice, split."""

from py_runtime.base.shapes import Dims, ceil_div, normalise_dim, strides_of
from py_runtime.live.values import LiveInt
from py_runtime.ops.kernels.elementwise import ELEMENTS
from py_runtime.ops.kernels.strided import StridedCopy
from py_runtime.ops.registry import Op, register


@register("aten.select_copy.int", "aten.select.int", args="x dim index out")
class Select(Op):
    """out = x[..., index, ...] along dim, which goes; index may be live, and count from the end."""

    def build(self) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        self.dim = normalise_dim(self.integer("dim"), self.x.rank)
        self.at = self.live_int("index")
        self.out = self.tensor("out", self.x.dtype, rank=self.x.rank - 1)
        self.move = StridedCopy(self, self.x, self.out, self.at)

    def live(self) -> None:
        dim, size, at = self.dim, self.x.dims[self.dim], self.at.value
        self.require_live(
            -size <= at < size, f"index {at} is outside dim {dim}, which has size {size}"
        )
        strides = strides_of(self.x.dims)
        self.out.resize(self.x.dims[:dim] + self.x.dims[dim + 1 :])
        self.move(
            self.out.dims,
            strides[:dim] + strides[dim + 1 :],
            start=at % size,
            start_stride=strides[dim],
        )


@register("aten.slice_copy.Tensor", "aten.slice.Tensor", args="x dim start end step out")
class Slice(Op):
    """out = x[..., start:end:step, ...] along dim; start and end may be live."""

    def build(self) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        self.dim = normalise_dim(self.integer("dim"), self.x.rank)
        self.start = self.live_int("start") if self.has("start") else None
        self.end = self.live_int("end") if self.has("end") else None
        self.step = self.integer("step")
        self.require(self.step >= 1, f"step is {self.step}; it must be at least 1")
        self.out = self.tensor("out", self.x.dtype, rank=self.x.rank)
        self.move = StridedCopy(self, self.x, self.out, self.start)

    def live(self) -> None:
        dim, size = self.dim, self.x.dims[self.dim]
        start = self.place(self.start, 0)
        end = self.place(self.end, size)
        self.require_live(
            start < end, f"[{start}:{end}] of dim {dim}, which has size {size}, is empty"
        )
        strides = strides_of(self.x.dims)
        dims = (
            *self.x.dims[:dim],
            ceil_div(end - start, self.step),
            *self.x.dims[dim + 1 :],
        )
        self.out.resize(dims)
        self.move(
            dims,
            (*strides[:dim], strides[dim] * self.step, *strides[dim + 1 :]),
            start=start,
            start_stride=strides[dim],
        )

    def place(self, given: LiveInt | None, default: int) -> int:
        """Return the bound as torch takes it: negative from the end, then clamped."""
        size = self.x.dims[self.dim]
        if given is None:
            return default
        at = given.value
        return max(0, min(at + size if at < 0 else at, size))


@register(
    "aten.split_with_sizes_copy.default",
    "aten.split_with_sizes.default",
    args="x sizes dim out",
)
class SplitWithSizes(Op):
    """outs: neighbouring parts of x along dim, of these sizes."""

    def build(self) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        self.dim = normalise_dim(self.integer("dim"), self.x.rank)
        self.sizes = self.live_ints("sizes")
        self.outs = self.tensors("out", self.x.dtype)
        self.require(
            len(self.sizes) == len(self.outs),
            f"there are {len(self.sizes)} sizes for {len(self.outs)} outputs",
        )
        self.moves = [StridedCopy(self, self.x, out) for out in self.outs]

    def live(self) -> None:
        dim, dims, strides = self.dim, self.x.dims, strides_of(self.x.dims)
        sizes = [entry.value for entry in self.sizes]
        self.require_live(
            sum(sizes) == dims[dim],
            f"sizes {sizes} add up to {sum(sizes)}, but dim {dim} has size {dims[dim]}",
        )
        start = 0
        for size, out, move in zip(sizes, self.outs, self.moves, strict=True):
            part: Dims = (*dims[:dim], size, *dims[dim + 1 :])
            out.resize(part)
            move(part, strides, source_at=start * strides[dim])
            start += size
