"""Helpers of elementwise ops: scalars as bits, functions of one element, and filling."""

from enum import Enum, auto
from functools import reduce

import numpy as np

from py_runtime.base.dtypes import BOOL, F32, I32, I64, DType
from py_runtime.base.errors import InputError
from py_runtime.base.shapes import Dims, broadcast
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.ops.registry import Op
from py_runtime.program import INT32_MAX, INT32_MIN, SymIntValue, TensorValue

CODES = figures_of("elementwise/fragments/codes_of_one")
INTEGERS = (I32, I64, BOOL)  # int32 on the GPU, bool as 0 and 1
ELEMENTS = (F32, *INTEGERS)


def element_bits(value: float, dtype: DType) -> int:
    """Return the 32 bits that a buffer of this dtype holds for a number."""
    if dtype is F32:
        with np.errstate(over="ignore"):
            return int(np.float32(value).view(np.uint32))
    if dtype is BOOL:
        return int(value != 0)
    if not INT32_MIN <= value <= INT32_MAX:
        raise InputError(f"{value} does not fit the GPU's int32")
    return int(value) % 2**32


def broadcast_dims(op: Op, *shapes: Dims) -> Dims:
    """Return the shape that all broadcast to; the error of a misfit names the op."""
    try:
        return reduce(broadcast, shapes)
    except InputError as error:
        raise InputError(f"{op.where}: {error}") from error


class Scalar:
    """A number argument: fixed, or a SymInt that is live."""

    def __init__(self, number: float | LiveInt) -> None:
        self._number = number

    @property
    def is_whole(self) -> bool:
        return isinstance(self._number, LiveInt) or float(self._number).is_integer()

    @property
    def value(self) -> float:
        return self._number.value if isinstance(self._number, LiveInt) else self._number

    def check(self, dtype: DType) -> None:
        """Refuse a fixed number that the dtype cannot hold.

        Call it in `build`, since such a number is a fault of the graph.
        """
        if not isinstance(self._number, LiveInt):
            element_bits(self._number, dtype)


class ElementwiseOp(Op):
    """An op whose arguments may be numbers where others take tensors."""

    def is_tensor(self, arg: str) -> bool:
        return isinstance(self._value(arg), TensorValue)

    def scalar(self, arg: str) -> Scalar:
        if isinstance(self._value(arg), SymIntValue):
            return Scalar(self.live_int(arg))
        return Scalar(self.number(arg))


class Function(Enum):
    """The functions by their names in shaders/elementwise/fragments/codes_of_one.wgsl."""

    IS_ZERO = auto()
    IS_NONZERO = auto()
    CONVERT = auto()
    NEG = auto()
    ABS = auto()
    RELU = auto()
    CLAMP = auto()
    CLAMP_MIN = auto()
    CLAMP_MAX = auto()
    BITWISE_NOT = auto()
    SIGMOID = auto()
    SILU = auto()
    GELU = auto()
    GELU_TANH = auto()
    TANH = auto()
    EXP = auto()
    LOG = auto()
    SQRT = auto()
    RSQRT = auto()
    SIN = auto()
    COS = auto()
    ROUND = auto()
    HARDSWISH = auto()
    LEAKY_RELU = auto()


class Unary:
    """A launch of one function over every element."""

    def __init__(
        self,
        op: Op,
        function: Function,
        x: LiveTensor,
        out: LiveTensor,
        first: int = 0,
        second: int = 0,
    ) -> None:
        plugs = {"elements": "f32" if x.dtype is F32 else "i32"}
        self._arguments = {"first": first, "second": second}
        self._launch = op.launch(
            "elementwise/unary",
            plugs=plugs,
            bind={"x": x, "out": out},
            constants={"CODE": CODES[function.name]},
        )

    def __call__(self, count: int) -> None:
        self._launch.for_each(count, count=count, **self._arguments)


class Fill:
    """A launch that writes first, first + step, first + 2 step, ...; step 0 writes one number."""

    def __init__(self, op: Op, out: LiveTensor) -> None:
        self._dtype = out.dtype
        self._launch = op.launch("elementwise/fill", bind={"out": out})

    def __call__(self, count: int, first: float, step: float = 0.0) -> None:
        self._launch.for_each(
            count,
            count=count,
            first=element_bits(first, self._dtype),
            step=element_bits(step, self._dtype),
            is_float=int(self._dtype is F32),
        )
