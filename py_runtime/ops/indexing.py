"""Elements looked up by index tensors: index_select, gather, index. Indices are clamped."""

from collections.abc import Sequence

from py_runtime.base.dtypes import I32, I64
from py_runtime.base.shapes import (
    Dims,
    broadcast_strides,
    normalise_dim,
    numel,
    strides_of,
)
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.elementwise import ELEMENTS, broadcast_dims
from py_runtime.ops.kernels.strided import walk
from py_runtime.ops.registry import Op, register
from py_runtime.program import NullValue, ValueListValue

OPERANDS = ("first", "second", "third")


class IndexOp(Op):
    """A subclass calls `declare` in `build` and `look_up` in `live`."""

    x: LiveTensor
    out: LiveTensor

    def declare(self, axes: Sequence[int], indices: Sequence[LiveTensor]) -> None:
        """`axes` of x are looked up in `indices`, one each."""
        self.axes, self.indices = axes, indices
        unused = [indices[0]] * (len(OPERANDS) - len(indices))
        bound = dict(zip(OPERANDS, [*indices, *unused], strict=True))
        self.pick = self.launch("copies/index", bind={"x": self.x, "out": self.out, **bound})

    def look_up(self, dims: Dims, x: Sequence[int], indices: Sequence[Sequence[int]]) -> None:
        """Look up an output of these dims; x and each index tensor have strides along them."""
        self.out.resize(dims)
        unused = len(OPERANDS) - len(indices)
        operands = [*indices, *[[0] * len(dims)] * unused]
        strides = strides_of(self.x.dims)
        self.pick.for_each(
            numel(dims),
            **walk(dims, x, *operands),
            indexed_sizes=(*(self.x.dims[axis] for axis in self.axes), *[1] * unused, 1),
            indexed_strides=(*(strides[axis] for axis in self.axes), *[0] * unused, 0),
        )


@register("aten.index_select.default", args="x dim index out")
class IndexSelect(IndexOp):
    """out[..., i, ...] = x[..., index[i], ...] along dim; index: [n]."""

    def build(self) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        self.out = self.tensor("out", self.x.dtype, rank=self.x.rank)
        self.dim = normalise_dim(self.integer("dim"), self.x.rank)
        self.declare([self.dim], [self.tensor("index", I32, I64, rank=1)])

    def live(self) -> None:
        dim, strides = self.dim, strides_of(self.x.dims)
        along = [0] * self.x.rank
        along[dim] = 1
        self.look_up(
            (*self.x.dims[:dim], self.indices[0].dims[0], *self.x.dims[dim + 1 :]),
            (*strides[:dim], 0, *strides[dim + 1 :]),
            [along],
        )


@register("aten.gather.default", args="x dim index sparse_grad out")
class Gather(IndexOp):
    """out[..., i, ...] = x[..., index[..., i, ...], ...] along dim; out has the dims of index."""

    def build(self) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        self.out = self.tensor("out", self.x.dtype, rank=self.x.rank)
        self.dim = normalise_dim(self.integer("dim"), self.x.rank)
        self.declare([self.dim], [self.tensor("index", I32, I64, rank=self.x.rank)])

    def live(self) -> None:
        dim, dims = self.dim, self.indices[0].dims
        self.require_live(
            all(dims[axis] <= size for axis, size in enumerate(self.x.dims) if axis != dim),
            f"the index's dims {list(dims)} reach beyond {list(self.x.dims)}",
        )
        strides = strides_of(self.x.dims)
        self.look_up(dims, (*strides[:dim], 0, *strides[dim + 1 :]), [strides_of(dims)])


@register("aten.index.Tensor", args="x indices out")
class Index(IndexOp):
    """x[i, :, j, ...]: the looked-up dims become one block, at the first of them if adjacent."""

    def build(self) -> None:
        self.x = self.tensor("x", *ELEMENTS)
        given = self.index_tensors()
        self.require(
            len(given) <= self.x.rank, f"{len(given)} indices for a tensor of rank {self.x.rank}"
        )
        axes = [axis for axis, tensor in enumerate(given) if tensor is not None]
        indices = [tensor for tensor in given if tensor is not None]
        self.require(
            1 <= len(indices) <= len(OPERANDS),
            f"{len(indices)} index tensors are given; 1 to {len(OPERANDS)} can be",
        )
        block_rank = max(tensor.rank for tensor in indices)
        rank = self.x.rank - len(axes) + block_rank
        self.out = self.tensor("out", self.x.dtype, rank=rank)
        adjacent = axes[-1] - axes[0] == len(axes) - 1
        self.block_at = axes[0] if adjacent else 0
        self.declare(axes, indices)

    def index_tensors(self) -> list[LiveTensor | None]:
        value = self._value("indices")
        if not isinstance(value, ValueListValue):
            raise self._wrong("indices", "a list of tensors and nulls")
        values = self.builder.program.values
        return [
            None
            if isinstance(values[item], NullValue)
            else self._checked_tensor("indices", item, (I32, I64), None)
            for item in value.ids
        ]

    def live(self) -> None:
        block = broadcast_dims(self, *(index.dims for index in self.indices))
        strides = strides_of(self.x.dims)
        kept = [axis for axis in range(self.x.rank) if axis not in self.axes]
        before, after = kept[: self.block_at], kept[self.block_at :]
        dims = (
            *(self.x.dims[axis] for axis in before),
            *block,
            *(self.x.dims[axis] for axis in after),
        )
        x = [
            *(strides[axis] for axis in before),
            *[0] * len(block),
            *(strides[axis] for axis in after),
        ]
        lead, tail = [0] * len(before), [0] * len(after)
        self.look_up(
            dims,
            x,
            [[*lead, *broadcast_strides(index.dims, block), *tail] for index in self.indices],
        )
