"""Tensors made from numbers: full, zeros, ones, their _like forms, scalar_tensor, arange."""

from math import ceil

from py_runtime.base.dtypes import F32, I32, I64
from py_runtime.base.shapes import Dims, numel
from py_runtime.ops.kernels.elementwise import ELEMENTS, ElementwiseOp, Fill, Scalar
from py_runtime.ops.registry import register

OPTIONS = "dtype layout device pin_memory"  # the output's own dtype decides; none of these is read


class Filled(ElementwiseOp):
    """One number everywhere; the number is an argument or part of the op's name."""

    def build(self) -> None:
        self.out = self.tensor("out", *ELEMENTS)
        self.number_of = self.take_value()
        self.number_of.check(self.out.dtype)
        self.take_shape()
        self.fill = Fill(self, self.out)

    def live(self) -> None:
        self.out.resize(self.dims())
        self.fill(numel(self.out.dims), self.number_of.value)

    def take_value(self) -> Scalar:
        return Scalar(1.0 if ".ones" in self.name else 0.0)

    def take_shape(self) -> None:
        self.size = self.live_ints("size")
        self.require(
            len(self.size) == self.out.rank,
            f"the output has rank {self.out.rank}; the size list has {len(self.size)} entries",
        )

    def dims(self) -> Dims:
        return tuple(entry.value for entry in self.size)


@register("aten.zeros.default", "aten.ones.default", args=f"size {OPTIONS} out")
class ZerosOnes(Filled):
    """out: [size], 0 or 1 everywhere."""


@register("aten.full.default", args=f"size value {OPTIONS} out")
class Full(Filled):
    """out: [size], `value` everywhere."""

    def take_value(self) -> Scalar:
        return self.scalar("value")


@register(
    "aten.zeros_like.default", "aten.ones_like.default", args=f"x {OPTIONS} memory_format out"
)
class Like(Filled):
    """out has the dims of x: 0 or 1 everywhere."""

    def take_shape(self) -> None:
        self.x = self.tensor("x")
        self.require(
            self.x.rank == self.out.rank,
            f"the output has rank {self.out.rank}; it must be {self.x.rank}",
        )

    def dims(self) -> Dims:
        return self.x.dims


@register("aten.full_like.default", args=f"x value {OPTIONS} memory_format out")
class FullLike(Like):
    """out has the dims of x: `value` everywhere."""

    def take_value(self) -> Scalar:
        return self.scalar("value")


@register("aten.scalar_tensor.default", args=f"value {OPTIONS} out")
class ScalarTensor(Filled):
    """out: [], `value`."""

    def take_value(self) -> Scalar:
        return self.scalar("value")

    def take_shape(self) -> None:
        self.require(self.out.rank == 0, f"the output has rank {self.out.rank}; it must be 0")

    def dims(self) -> Dims:
        return ()


@register("aten.arange.start_step", args=f"start end step {OPTIONS} out")
class Arange(ElementwiseOp):
    """out: [ceil((end - start) / step)], start + step i."""

    def build(self) -> None:
        self.start, self.end, self.step = (self.scalar(arg) for arg in ("start", "end", "step"))
        self.out = self.tensor("out", F32, I32, I64, rank=1)
        self.require(
            self.out.dtype is F32 or (self.start.is_whole and self.step.is_whole),
            "integers need a whole start and step",
        )
        self.start.check(self.out.dtype)
        self.step.check(self.out.dtype)
        self.fill = Fill(self, self.out)

    def live(self) -> None:
        start, end, step = self.start.value, self.end.value, self.step.value
        length = ceil((end - start) / step) if step else 0
        self.require_live(length > 0, f"from {start} to {end} by {step} there is no element")
        self.out.resize((length,))
        self.fill(length, start, step)
