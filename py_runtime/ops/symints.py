"""Live scalars: where they come from (inputs, live dims) and their arithmetic. No kernels."""

from abc import abstractmethod

import numpy as np

from py_runtime.base.dtypes import I32, I64
from py_runtime.base.shapes import normalise_dim
from py_runtime.ops.registry import HostReadOp, Op, register
from py_runtime.program import INT32_MAX, INT32_MIN


@register("et_vk.select_as_symint.default", args="x dim index out")
class SelectAsSymint(HostReadOp):
    """The element [0, …, index, …, 0] of an input, with `index` at `dim`, read on the host."""

    def build(self) -> None:
        x = self.tensor("x", I64, I32)
        self.dim, self.at = self.integer("dim"), self.integer("index")
        self.out = self.symint_out()
        self.builder.read_from_host(self, x)

    def read_host(self, array: np.ndarray) -> None:
        array = np.atleast_1d(array)  # a scalar is the one element of a vector
        dim = normalise_dim(self.dim, array.ndim)
        size = array.shape[dim]
        self.require_live(
            -size <= self.at < size, f"index {self.at} is outside dim {dim} of size {size}"
        )
        place = [0] * array.ndim
        place[dim] = self.at
        if self.out is not None:
            self.out.set(int(array[tuple(place)]))

    def live(self) -> None:
        """Set by read_host, before the chain runs."""


@register("sym_size.int", args="x dim out")
class SymSize(Op):
    """out: how long dim of x is in this call."""

    def build(self) -> None:
        self.x = self.tensor("x")
        self.dim = normalise_dim(self.integer("dim"), self.x.rank)
        self.out = self.symint_out()

    def live(self) -> None:
        if self.out is not None:
            self.out.set(self.x.dims[self.dim])


class SymIntArithmetic(Op):
    """Exact arithmetic on the host; a result beyond int32 is refused."""

    def build(self) -> None:
        self.a, self.b = self.live_int("a"), self.live_int("b")
        self.out = self.symint_out()

    def live(self) -> None:
        if self.out is None:
            return
        result = self.compute(self.a.value, self.b.value)
        self.require_live(INT32_MIN <= result <= INT32_MAX, f"the result {result} is not an int32")
        self.out.set(result)

    @abstractmethod
    def compute(self, a: int, b: int) -> int: ...


@register("add", args="a b out")
class SymIntAdd(SymIntArithmetic):
    """a + b."""

    def compute(self, a: int, b: int) -> int:
        return a + b


@register("sub", args="a b out")
class SymIntSub(SymIntArithmetic):
    """a - b."""

    def compute(self, a: int, b: int) -> int:
        return a - b


@register("mul", args="a b out")
class SymIntMul(SymIntArithmetic):
    """a b."""

    def compute(self, a: int, b: int) -> int:
        return a * b


@register("floordiv", args="a b out")
class SymIntFloorDiv(SymIntArithmetic):
    """Rounds towards minus infinity, as Python does."""

    def compute(self, a: int, b: int) -> int:
        self.require_live(b != 0, f"{a} // 0: division by zero")
        return a // b
