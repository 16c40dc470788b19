"""The same elements in another order, or stretched.

The ops are permute, transpose, expand, repeat, flip and pixel_shuffle.
"""

from py_runtime.base.shapes import broadcast_strides, normalise_dim, numel, strides_of
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.elementwise import ELEMENTS
from py_runtime.ops.kernels.strided import StridedCopy
from py_runtime.ops.registry import Op, register


class RearrangeOp(Op):
    """One strided copy; subclasses say in which order x is walked."""

    x: LiveTensor
    out: LiveTensor

    def take_tensors(self, rank: int) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        self.out = self.tensor("out", self.x.dtype, rank=rank)
        self.move = StridedCopy(self, self.x, self.out)


@register("aten.permute.default", "aten.permute_copy.default", args="x dims out")
class Permute(RearrangeOp):
    """out's dim i is x's dim dims[i]."""

    def build(self) -> None:
        dims = self.int_list("dims")
        self.take_tensors(len(dims))
        self.order = [normalise_dim(dim, self.x.rank) for dim in dims]
        self.require(
            sorted(self.order) == list(range(self.x.rank)),
            f"{dims} is not a permutation of {self.x.rank} dims",
        )

    def live(self) -> None:
        strides = strides_of(self.x.dims)
        self.out.resize(tuple(self.x.dims[axis] for axis in self.order))
        self.move(self.out.dims, [strides[axis] for axis in self.order])


@register("aten.transpose.int", "aten.transpose_copy.int", args="x dim0 dim1 out")
class Transpose(Permute):
    """dim0 and dim1 change places."""

    def build(self) -> None:
        rank = self.tensor("x").rank
        self.take_tensors(rank)
        self.order = list(range(rank))
        a, b = normalise_dim(self.integer("dim0"), rank), normalise_dim(self.integer("dim1"), rank)
        self.order[a], self.order[b] = b, a


@register("aten.expand_copy.default", "aten.expand.default", args="x size implicit out")
class Expand(RearrangeOp):
    """Dims of 1 stretch to `size`, and dims may come before; -1 keeps a dim as it is."""

    def build(self) -> None:
        self.size = self.live_ints("size")
        self.take_tensors(len(self.size))
        self.require(
            self.x.rank <= len(self.size),
            f"{list(self.x.max_dims)} has more dims than the size list ({len(self.size)})",
        )

    def live(self) -> None:
        lead = len(self.size) - self.x.rank
        own = (1,) * lead + self.x.dims
        sizes = [entry.value for entry in self.size]
        dims = tuple(
            size if wanted == -1 and axis >= lead else wanted
            for axis, (size, wanted) in enumerate(zip(own, sizes, strict=True))
        )
        self.require_live(
            all(size in (1, wanted) for size, wanted in zip(own, dims, strict=True)),
            f"{list(self.x.dims)} does not expand to {sizes}",
        )
        self.out.resize(dims)
        self.move(dims, broadcast_strides(self.x.dims, dims))


@register("aten.repeat.default", args="x repeats out")
class Repeat(RearrangeOp):
    """All of x again and again: repeats[i] times along dim i; dims may come before."""

    def build(self) -> None:
        self.repeats = self.live_ints("repeats")
        self.take_tensors(len(self.repeats))
        self.require(
            self.x.rank <= len(self.repeats),
            f"{list(self.x.max_dims)} has more dims than there are repeats ({len(self.repeats)})",
        )

    def live(self) -> None:
        repeats = [entry.value for entry in self.repeats]
        own = (1,) * (len(repeats) - self.x.rank) + self.x.dims
        self.out.resize(tuple(size * times for size, times in zip(own, repeats, strict=True)))
        # The output as [times, size, times, size, ...]: the source stands still along `times`.
        dims: list[int] = []
        strides: list[int] = []
        for size, times, stride in zip(own, repeats, strides_of(own), strict=True):
            dims += [times, size]
            strides += [0, stride]
        self.move(dims, strides)


@register("aten.flip.default", args="x dims out")
class Flip(RearrangeOp):
    """The order along these dims is turned round."""

    def build(self) -> None:
        self.take_tensors(self.tensor("x").rank)
        self.flipped = {normalise_dim(dim, self.x.rank) for dim in self.int_list("dims")}

    def live(self) -> None:
        dims, strides = self.x.dims, strides_of(self.x.dims)
        self.out.resize(dims)
        self.move(
            dims,
            [-stride if axis in self.flipped else stride for axis, stride in enumerate(strides)],
            source_at=sum((dims[axis] - 1) * strides[axis] for axis in self.flipped),
        )


@register("aten.pixel_shuffle.default", args="x factor out")
class PixelShuffle(RearrangeOp):
    """[..., C factor², H, W] becomes [..., C, H factor, W factor]."""

    def build(self) -> None:
        self.factor = self.integer("factor")
        self.take_tensors(self.tensor("x").rank)
        self.require(
            self.x.rank >= 3 and self.factor >= 1 and self.x.max_dims[-3] % self.factor**2 == 0,
            f"{list(self.x.max_dims)} cannot be shuffled by {self.factor}",
        )

    def live(self) -> None:
        *lead, channels, height, width = self.x.dims
        factor = self.factor
        groups, left = divmod(channels, factor * factor)
        self.require_live(left == 0, f"{channels} channels cannot be shuffled by {factor}")
        self.out.resize((*lead, groups, height * factor, width * factor))
        # The output as [lead, groups, height, factor, width, factor].
        plane = height * width
        self.move(
            (numel(lead), groups, height, factor, width, factor),
            (
                channels * plane,
                factor * factor * plane,
                width,
                factor * plane,
                1,
                plane,
            ),
        )
