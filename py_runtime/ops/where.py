"""aten.where: elements of a where the condition holds, of b elsewhere, with broadcasting."""

from py_runtime.base.dtypes import BOOL
from py_runtime.base.shapes import broadcast_strides, numel
from py_runtime.ops.kernels.elementwise import ELEMENTS, broadcast_dims
from py_runtime.ops.kernels.strided import walk
from py_runtime.ops.registry import Op, register


@register("aten.where.self", args="condition a b out")
class Where(Op):
    """out = a where the condition holds, elsewhere b; all three broadcast."""

    def build(self) -> None:
        self.condition = self.tensor("condition", BOOL)
        self.a = self.tensor("a", *ELEMENTS)
        self.b = self.tensor("b", *ELEMENTS)
        rank = max(self.condition.rank, self.a.rank, self.b.rank)
        self.out = self.tensor("out", *ELEMENTS, rank=rank)
        kinds = {tensor.dtype.gpu for tensor in (self.a, self.b, self.out)}
        self.require(
            len(kinds) == 1,
            f"a is {self.a.dtype.name}, b {self.b.dtype.name} and the output "
            f"{self.out.dtype.name}; cast them to one dtype first",
        )
        self.choose = self.launch(
            "elementwise/where",
            bind={"condition": self.condition, "a": self.a, "b": self.b, "out": self.out},
        )

    def live(self) -> None:
        dims = broadcast_dims(self, self.condition.dims, self.a.dims, self.b.dims)
        self.out.resize(dims)
        self.choose.for_each(
            numel(dims),
            **walk(
                dims,
                broadcast_strides(self.condition.dims, dims),
                broadcast_strides(self.a.dims, dims),
                broadcast_strides(self.b.dims, dims),
            ),
        )
