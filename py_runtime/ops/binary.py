"""Arithmetic, comparison and logic of two operands with broadcasting; b may be a number."""

from py_runtime.base.dtypes import BOOL, F32, I32, I64, DType
from py_runtime.base.shapes import broadcast_strides, numel
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.ops.kernels.elementwise import (
    ELEMENTS,
    INTEGERS,
    ElementwiseOp,
    Scalar,
    broadcast_dims,
    element_bits,
)
from py_runtime.ops.kernels.strided import walk
from py_runtime.ops.registry import register

CODES = figures_of("elementwise/fragments/codes_of_two")


def forms(*ops: str) -> list[str]:
    """Each op's names for a tensor and for a number as second operand."""
    return [f"aten.{op}.{form}" for op in ops for form in ("Tensor", "Scalar")]


class Binary(ElementwiseOp):
    """`build` of a subclass chooses the function, and f32 or i32, then calls `declare`."""

    def take_operands(self, *dtypes: DType) -> None:
        self.a = self.tensor("a", *dtypes)
        self.b = self.tensor("b", *dtypes) if self.is_tensor("b") else None
        self.b_scalar = Scalar(0.0) if self.b is not None else self.scalar("b")
        self.alpha = 1.0

    @property
    def operand_dtypes(self) -> set[DType]:
        return {self.a.dtype} if self.b is None else {self.a.dtype, self.b.dtype}

    @property
    def base_name(self) -> str:
        return self.name.split(".")[1]

    def declare(self, function: str, in_floats: bool, *out_dtypes: DType) -> None:
        self.out = self.tensor("out", *out_dtypes)
        b = self.a if self.b is None else self.b
        rank = self.a.rank if self.b is None else max(self.a.rank, self.b.rank)
        self.require(
            self.out.rank == rank, f"the output has rank {self.out.rank}; it must be {rank}"
        )
        self.compute_dtype = F32 if in_floats else I32
        self.b_scalar.check(self.compute_dtype)
        constants = {"CODE": CODES[function.upper()]}
        if in_floats:
            constants["A_IS_INTEGER"] = int(self.a.dtype is not F32)
            constants["B_IS_INTEGER"] = int(self.b is not None and self.b.dtype is not F32)
        self.combine = self.launch(
            "elementwise/binary",
            plugs={"operands": "f32" if in_floats else "i32"},
            bind={"a": self.a, "b": b, "out": self.out},
            constants=constants,
        )

    def live(self) -> None:
        b_dims = () if self.b is None else self.b.dims
        dims = broadcast_dims(self, self.a.dims, b_dims)
        self.out.resize(dims)
        self.combine.for_each(
            numel(dims),
            **walk(
                dims,
                broadcast_strides(self.a.dims, dims),
                broadcast_strides(b_dims, dims),
            ),
            alpha=element_bits(self.alpha, self.compute_dtype),
            b_is_scalar=int(self.b is None),
            b_scalar=element_bits(self.b_scalar.value, self.compute_dtype),
        )


class Arithmetic(Binary):
    """Integers stay integers as in torch; one float among the operands makes all of it f32."""

    function = ""  # where it differs from the op's name
    keeps_bools = True  # whether bool with bool gives bool by the same arithmetic

    def build(self) -> None:
        self.take_operands(*ELEMENTS)
        # A whole number may have been stored as another kind, so the output's dtype decides.
        out_is_float = self.tensor("out").dtype is F32
        in_floats = F32 in self.operand_dtypes or out_is_float or not self.b_scalar.is_whole
        results = (F32,) if in_floats else (I32, I64)
        if self.keeps_bools and self.operand_dtypes == {BOOL}:
            results = (*results, BOOL)
        self.declare(self.function or self.base_name, in_floats, *results)


@register(*forms("add", "sub"), args="a b alpha out")
class AddSub(Arithmetic):
    """out = a ± alpha b."""

    function = "add"
    keeps_bools = False

    def build(self) -> None:
        super().build()
        alpha = self.number("alpha")
        self.require(
            self.compute_dtype is F32 or alpha.is_integer(),
            f"alpha is {alpha}; integers take a whole one",
        )
        self.alpha = -alpha if self.base_name == "sub" else alpha


@register(
    *forms("mul"),
    "aten.minimum.default",
    "aten.maximum.default",
    "aten.pow.Tensor_Tensor",
    "aten.pow.Tensor_Scalar",
    args="a b out",
)
class MulMinMaxPow(Arithmetic):
    """out = a b, min(a, b), max(a, b) or a^b, by the op's name."""


@register(*forms("div"), args="a b out")
class Div(Binary):
    """True division: integers give f32."""

    def build(self) -> None:
        self.take_operands(*ELEMENTS)
        self.declare("div", True, F32)


@register("aten.div.Tensor_mode", args="a b rounding_mode out")
class DivMode(Arithmetic):
    """out = a / b rounded down or towards 0; without a mode, true division."""

    keeps_bools = False

    def build(self) -> None:
        if not self.has("rounding_mode"):
            self.take_operands(*ELEMENTS)
            self.declare("div", True, F32)
            return
        mode = self.string("rounding_mode")
        self.require(mode in ("floor", "trunc"), f"rounding mode '{mode}' is not floor or trunc")
        self.function = f"{mode}_div"
        super().build()


@register(
    *forms("eq", "ne", "ge", "gt", "le", "lt"),
    "aten.logical_and.default",
    "aten.logical_or.default",
    args="a b out",
)
class Comparison(Binary):
    """out: bool, whether a and b compare so; to logic, all but 0 is true."""

    def build(self) -> None:
        self.take_operands(*ELEMENTS)
        in_floats = F32 in self.operand_dtypes or not self.b_scalar.is_whole
        self.declare(self.base_name, in_floats, BOOL)


@register("aten.bitwise_and.Tensor", "aten.bitwise_or.Tensor", args="a b out")
class Bitwise(Binary):
    """out = a & b or a | b of integers; of bools it is a bool."""

    def build(self) -> None:
        self.take_operands(*INTEGERS)
        results = (BOOL,) if self.operand_dtypes == {BOOL} else (I32, I64)
        self.declare(self.base_name, False, *results)
