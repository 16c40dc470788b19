"""_to_copy and its kin: another dtype for the same elements, or nothing at all."""

from py_runtime.base.dtypes import BOOL, F32
from py_runtime.base.shapes import numel
from py_runtime.live.launch import BufferCopy
from py_runtime.ops.kernels.elementwise import ELEMENTS, Function, Unary
from py_runtime.ops.registry import Op, register


@register(
    "aten._to_copy.default",
    args="x dtype layout device pin_memory non_blocking memory_format out",
)
@register(
    "dim_order_ops._to_dim_order_copy.default",
    args="x dtype layout device pin_memory non_blocking dim_order out",
)
class Cast(Op):
    """The dtypes of the two tensors decide; the arguments that torch has for it are not read."""

    def build(self) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        self.out = self.tensor("out", *ELEMENTS)
        self.require(
            self.x.rank == self.out.rank,
            f"the output has rank {self.out.rank}; it must be {self.x.rank}",
        )
        self.cast: Unary | None = None
        self.copied: BufferCopy | None = None
        if self.out.dtype is BOOL and self.x.dtype is not BOOL:
            self.cast = Unary(self, Function.IS_NONZERO, self.x, self.out)
        elif (self.x.dtype is F32) != (self.out.dtype is F32):
            self.cast = Unary(self, Function.CONVERT, self.x, self.out)
        elif not self.try_alias(self.x, self.out):
            self.copied = self.copy(self.x, self.out)

    def live(self) -> None:
        self.out.resize(self.x.dims)
        if self.cast is not None:
            self.cast(numel(self.x.dims))
        if self.copied is not None:
            self.copied(self.x.live_bytes)
