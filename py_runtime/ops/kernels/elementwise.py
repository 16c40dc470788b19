"""What elementwise ops share: scalars as bits, functions of one element, and filling."""

from enum import IntEnum
from functools import reduce

import numpy as np

from py_runtime.base.dtypes import BOOL, F32, I32, I64, DType
from py_runtime.base.errors import InputError
from py_runtime.base.shapes import Dims, broadcast, ceil_div
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.ops.registry import Op
from py_runtime.program import INT32_MAX, INT32_MIN, SymIntValue, TensorValue

WORKGROUP = 64  # as in the shaders
INTEGERS = (I32, I64, BOOL)  # int32 on the GPU, bool as 0 and 1
ELEMENTS = (F32, *INTEGERS)


def element_bits(value: float, dtype: DType) -> int:
    """The 32 bits that a buffer of this dtype holds for a number."""
    if dtype is F32:
        with np.errstate(over="ignore"):
            return int(np.float32(value).view(np.uint32))
    if dtype is BOOL:
        return int(value != 0)
    if not INT32_MIN <= value <= INT32_MAX:
        raise InputError(f"{value} does not fit the GPU's int32")
    return int(value) % 2**32


def broadcast_dims(op: Op, *shapes: Dims) -> Dims:
    """The shape that all stretch to; a misfit names the op."""
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
        """A fixed number that the dtype cannot hold is a fault of the graph: for `build`."""
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


class Function(IntEnum):
    """CODE of shaders/unary_f32.wgsl and, below SIGMOID, of shaders/unary_i32.wgsl."""

    IS_ZERO = 0
    IS_NONZERO = 1
    CONVERT = 2  # f32 to i32 towards zero, i32 to f32
    NEG = 3
    ABS = 4
    RELU = 5
    CLAMP = 6
    CLAMP_MIN = 7
    CLAMP_MAX = 8
    BITWISE_NOT = 9  # i32 only
    SIGMOID = 10
    SILU = 11
    GELU = 12
    GELU_TANH = 13
    TANH = 14
    EXP = 15
    LOG = 16
    SQRT = 17
    RSQRT = 18
    SIN = 19
    COS = 20
    ROUND = 21
    HARDSWISH = 22
    LEAKY_RELU = 23


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
        kind = (
            "elementwise/fragments/unary_f32"
            if x.dtype is F32
            else "elementwise/fragments/unary_i32"
        )
        self._arguments = {"first": first, "second": second}
        self._launch = op.launch(
            "elementwise/unary", kind, bind={"x": x, "out": out}, constants={"CODE": function}
        )

    def __call__(self, count: int) -> None:
        self._launch(ceil_div(count, WORKGROUP), count=count, **self._arguments)


class Fill:
    """A launch that writes first, first + step, first + 2 step, ...; step 0 writes one number."""

    def __init__(self, op: Op, out: LiveTensor) -> None:
        self._dtype = out.dtype
        self._launch = op.launch("elementwise/fill", bind={"out": out})

    def __call__(self, count: int, first: float, step: float = 0.0) -> None:
        self._launch(
            ceil_div(count, WORKGROUP),
            count=count,
            first=element_bits(first, self._dtype),
            step=element_bits(step, self._dtype),
            is_float=int(self._dtype is F32),
        )
