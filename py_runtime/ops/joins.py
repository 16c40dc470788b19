"""Tensors inside a larger one: cat and constant_pad_nd."""

from py_runtime.base.shapes import normalise_dim, numel, strides_of
from py_runtime.ops.kernels.elementwise import ELEMENTS, ElementwiseOp, Fill
from py_runtime.ops.kernels.strided import StridedCopy
from py_runtime.ops.registry import Op, register


@register("aten.cat.default", args="tensors dim out")
class Cat(Op):
    """out: the tensors one after the other along dim; their other dims are alike."""

    def build(self) -> None:
        self.out = self.tensor("out", *ELEMENTS)
        self.parts = self.tensors("tensors", self.out.dtype)
        self.require(len(self.parts) >= 1, "the list of tensors is empty")
        rank = self.out.rank
        for part in self.parts:
            self.require(
                part.rank == rank, f"{part.label} has rank {part.rank}, the output has {rank}"
            )
        self.dim = normalise_dim(self.integer("dim"), rank)
        self.moves = [StridedCopy(self, part, self.out) for part in self.parts]

    def live(self) -> None:
        dim, shape = self.dim, list(self.parts[0].dims)
        for part in self.parts:
            shape[dim] = part.dims[dim]
            self.require_live(
                part.dims == tuple(shape),
                f"{part.label} has dims {list(part.dims)}, which do not fit "
                f"{list(self.parts[0].dims)} along dim {dim}",
            )
        shape[dim] = sum(part.dims[dim] for part in self.parts)
        self.out.resize(tuple(shape))
        strides = strides_of(shape)
        start = 0
        for part, move in zip(self.parts, self.moves, strict=True):
            move(part.dims, strides_of(part.dims), strides, destination_at=start * strides[dim])
            start += part.dims[dim]


@register("aten.constant_pad_nd.default", args="x pad value out")
class ConstantPad(ElementwiseOp):
    """`pad` holds (before, after) for the last dim, then the one before it; negative pads crop."""

    def build(self) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        self.out = self.tensor("out", self.x.dtype, rank=self.x.rank)
        self.pad = self.live_ints("pad")
        self.require(
            len(self.pad) % 2 == 0 and len(self.pad) <= 2 * self.x.rank,
            f"{len(self.pad)} pads do not fit a tensor of rank {self.x.rank}",
        )
        self.value = self.scalar("value")
        self.value.check(self.out.dtype)
        self.fill = Fill(self, self.out)
        self.move = StridedCopy(self, self.x, self.out)

    def live(self) -> None:
        before, after = [0] * self.x.rank, [0] * self.x.rank
        for at in range(len(self.pad) // 2):
            before[-1 - at] = self.pad[2 * at].value
            after[-1 - at] = self.pad[2 * at + 1].value
        pads = list(zip(self.x.dims, before, after, strict=True))
        taken = [size + min(low, 0) + min(high, 0) for size, low, high in pads]
        self.require_live(
            min(taken, default=1) > 0,
            f"pads {[entry.value for entry in self.pad]} crop all of {list(self.x.dims)}",
        )
        self.out.resize(tuple(size + low + high for size, low, high in pads))
        source, destination = strides_of(self.x.dims), strides_of(self.out.dims)
        self.fill(numel(self.out.dims), self.value.value)
        self.move(
            taken,
            source,
            destination,
            source_at=sum(max(-low, 0) * step for low, step in zip(before, source, strict=True)),
            destination_at=sum(
                max(low, 0) * step for low, step in zip(before, destination, strict=True)
            ),
        )
