"""Views: the same elements under other dims. They cost nothing where the bytes can be shared."""

from abc import abstractmethod

from py_runtime.base.shapes import Dims, normalise_dim, numel
from py_runtime.live.launch import BufferCopy
from py_runtime.live.values import LiveTensor
from py_runtime.ops.registry import Op, register


class ViewOp(Op):
    """A subclass says which dims the output has."""

    x: LiveTensor

    def build(self) -> None:
        self.x = self.tensor("x")
        self.out = self.tensor("out")
        self.require(
            self.x.dtype.gpu == self.out.dtype.gpu,
            f"a view of {self.x.dtype.name} cannot be {self.out.dtype.name}",
        )
        rank = self.build_view()
        self.require(
            self.out.rank == rank, f"the output has rank {self.out.rank}; it must be {rank}"
        )
        # Bytes that some op writes in place cannot be shared: a view keeps what it saw.
        aliased = self.try_alias(self.x, self.out)
        self.copied: BufferCopy | None = None if aliased else self.copy(self.x, self.out)

    def live(self) -> None:
        self.out.resize(self.view_dims())
        if self.copied is not None:
            self.copied(self.x.live_bytes)

    @abstractmethod
    def build_view(self) -> int:
        """Take the other arguments and return the output's rank."""

    @abstractmethod
    def view_dims(self) -> Dims: ...


@register(
    "aten.view_copy.default",
    "aten.view.default",
    "aten._unsafe_view.default",
    "aten.reshape.default",
    args="x size out",
)
class View(ViewOp):
    """The size list alone decides, with SymInts at their live values and at most one -1."""

    def build_view(self) -> int:
        self.size = self.live_ints("size")
        fixed = [entry.value for entry in self.size if not entry.is_symint]
        self.require(
            fixed.count(-1) <= 1 and all(value >= -1 for value in fixed),
            f"the size list has the fixed entries {fixed}; one -1 at most, nothing below",
        )
        return len(self.size)

    def view_dims(self) -> Dims:
        dims = [entry.value for entry in self.size]
        count = numel(self.x.dims)
        open_at = [at for at, e in enumerate(self.size) if e.value == -1 and not e.is_symint]
        if open_at:
            dims[open_at[0]] = count // max(-numel(dims), 1)  # a dim below 1 is refused below
        self.require_live(
            min(dims, default=1) > 0 and numel(dims) == count,
            f"{list(self.x.dims)} has {count} elements and cannot be viewed as "
            f"{[entry.value for entry in self.size]}",
        )
        return tuple(dims)


@register(
    "aten.squeeze_copy.dims",
    "aten.squeeze.dims",
    "aten.squeeze_copy.dim",
    "aten.squeeze.dim",
    args="x dims out",
)
class Squeeze(ViewOp):
    """Drops those of the dims whose maximum is 1; one that is live at 1 by chance stays."""

    def build_view(self) -> int:
        asked = {normalise_dim(dim, self.x.rank) for dim in self.int_list("dims")}
        self.kept = [
            axis for axis, size in enumerate(self.x.max_dims) if axis not in asked or size != 1
        ]
        return len(self.kept)

    def view_dims(self) -> Dims:
        return tuple(self.x.dims[axis] for axis in self.kept)


@register("aten.unsqueeze_copy.default", "aten.unsqueeze.default", args="x dim out")
class Unsqueeze(ViewOp):
    """One more dim, of size 1, at `dim`."""

    def build_view(self) -> int:
        self.dim = normalise_dim(self.integer("dim"), self.x.rank + 1)
        return self.x.rank + 1

    def view_dims(self) -> Dims:
        return (*self.x.dims[: self.dim], 1, *self.x.dims[self.dim :])


@register("aten.clone.default", args="x memory_format out")
@register("dim_order_ops._clone_dim_order.default", args="x non_blocking dim_order out")
@register("aten.alias_copy.default", "aten.alias.default", "et_vk.prepack.default", args="x out")
class Same(ViewOp):
    """out is x."""

    def build_view(self) -> int:
        return self.x.rank

    def view_dims(self) -> Dims:
        return self.x.dims
