"""Functions of one tensor, element by element."""

from py_runtime.base.dtypes import BOOL, F32, I32, I64
from py_runtime.base.shapes import numel
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.elementwise import (
    ELEMENTS,
    INTEGERS,
    ElementwiseOp,
    Function,
    Unary,
    element_bits,
)
from py_runtime.ops.registry import register


class UnaryOp(ElementwiseOp):
    """`build` of a subclass checks the dtypes, then calls `declare`."""

    x: LiveTensor
    out: LiveTensor

    def declare(self, function: Function, first: int = 0, second: int = 0) -> None:
        self.require(
            self.x.rank == self.out.rank,
            f"the output has rank {self.out.rank}; it must be {self.x.rank}",
        )
        self.apply = Unary(self, function, self.x, self.out, first, second)

    def live(self) -> None:
        self.out.resize(self.x.dims)
        self.apply(numel(self.x.dims))

    def take_like(self) -> None:
        """Take x and the output: f32 for an f32 tensor, integers for an integer one."""
        self.x = self.tensor("x", F32, I32, I64)
        self.out = self.tensor("out", *((F32,) if self.x.dtype is F32 else (I32, I64)))

    @property
    def function(self) -> Function:
        return Function[self.name.split(".")[1].upper()]


FLOAT_FUNCTIONS = "sigmoid silu tanh exp log sqrt rsqrt sin cos round hardswish"


@register(*(f"aten.{name}.default" for name in FLOAT_FUNCTIONS.split()), args="x out")
class FloatFunction(UnaryOp):
    """out = f(x), f32, by the op's name; round goes to the even one of two."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.out = self.tensor("out", F32)
        self.declare(self.function)


@register("aten.neg.default", "aten.abs.default", "aten.relu.default", args="x out")
class SignFunction(UnaryOp):
    """out = -x, |x| or max(x, 0), in the kind of x."""

    def build(self) -> None:
        self.take_like()
        self.declare(self.function)


@register("aten.gelu.default", args="x approximate out")
class Gelu(UnaryOp):
    """out = x Φ(x), with erf, or its approximation with tanh."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.out = self.tensor("out", F32)
        approximate = self.string("approximate")
        self.require(
            approximate in ("none", "tanh"), f"approximate '{approximate}' is not none or tanh"
        )
        self.declare(Function.GELU if approximate == "none" else Function.GELU_TANH)


@register("aten.clamp.default", "aten.hardtanh.default", args="x min max out")
class Clamp(UnaryOp):
    """out = min(max(x, `min`), `max`); one of the two may be null."""

    def build(self) -> None:
        self.take_like()
        least, most = self.bound("min"), self.bound("max")
        if least is None and most is None:
            self.require(False, "both min and max are null; give at least one")
        elif least is None:
            self.declare(Function.CLAMP_MAX, 0, most or 0)
        elif most is None:
            self.declare(Function.CLAMP_MIN, least)
        else:
            self.declare(Function.CLAMP, least, most)

    def bound(self, arg: str) -> int | None:
        if not self.has(arg):
            return None
        number = self.number(arg)
        self.require(
            self.x.dtype is F32 or number.is_integer(),
            f"{arg} is {number}; integers take a whole one",
        )
        return element_bits(number, self.x.dtype)


@register("aten.leaky_relu.default", args="x negative_slope out")
class LeakyRelu(UnaryOp):
    """out = x above 0, elsewhere negative_slope x."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.out = self.tensor("out", F32)
        self.declare(Function.LEAKY_RELU, element_bits(self.number("negative_slope"), F32))


@register("aten.logical_not.default", args="x out")
class LogicalNot(UnaryOp):
    """out: bool, whether x is 0."""

    def build(self) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        self.out = self.tensor("out", BOOL)
        self.declare(Function.IS_ZERO)


@register("aten.bitwise_not.default", args="x out")
class BitwiseNot(UnaryOp):
    """out = ~x; of bools, not x."""

    def build(self) -> None:
        self.x = self.tensor("x", *INTEGERS)
        is_bool = self.x.dtype is BOOL
        self.out = self.tensor("out", *((BOOL,) if is_bool else (I32, I64)))
        self.declare(Function.IS_ZERO if is_bool else Function.BITWISE_NOT)
