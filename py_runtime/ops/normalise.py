"""aten.native_layer_norm and aten.native_group_norm: the rows' means and deviations taken out."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import Dims, numel
from py_runtime.live.values import LiveTensor
from py_runtime.ops.registry import Op, register


class Normalise(Op):
    """A subclass calls `declare` in `build` and `normalise` in `live`."""

    x: LiveTensor

    def declare(self, channels: Dims, stats_rank: int) -> None:
        self.eps = self.number("eps")
        self.weight = self.tensor("weight", F32) if self.has("weight") else None
        self.bias = self.tensor("bias", F32) if self.has("bias") else None
        for tensor in filter(None, (self.weight, self.bias)):
            self.require(
                tensor.max_dims == channels,
                f"{tensor.label} is {list(tensor.max_dims)}; it must be {list(channels)}",
            )
        outs = self.tensors("out", F32)
        ranks = [out.rank for out in outs]
        wanted = [self.x.rank, stats_rank, stats_rank]
        self.require(ranks == wanted, f"the outputs have ranks {ranks}; they must be {wanted}")
        self.out, self.means, self.rstds = outs
        self.kernel = self.launch(
            "reduce/normalise",
            bind={
                "x": self.x,
                "weight": self.weight or self.x,
                "bias": self.bias or self.x,
                "out": self.out,
                "means": self.means,
                "rstds": self.rstds,
            },
        )

    def normalise(self, stats: Dims, inner: int, group_count: int) -> None:
        """`stats` are the dims of the means: a row of x each."""
        self.out.resize(self.x.dims)
        self.means.resize(stats)
        self.rstds.resize(stats)
        rows = numel(stats)
        normalise = self.kernel if self.builder.target.cpu else self.kernel.for_each
        normalise(  # a workgroup a row on the CPU
            rows,
            rows=rows,
            width=numel(self.x.dims) // rows,
            inner=inner,
            group_count=group_count,
            eps=self.eps,
            has_weight=int(self.weight is not None),
            has_bias=int(self.bias is not None),
        )


@register("aten.native_layer_norm.default", args="x shape weight bias eps out")
class LayerNorm(Normalise):
    """x: [..., *shape]; weight, bias: shape. Each [*shape] of x is a row."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.shape = tuple(self.int_list("shape"))
        self.lead = self.x.rank - len(self.shape)
        self.require(
            len(self.shape) >= 1 and self.x.max_dims[max(self.lead, 0) :] == self.shape,
            f"{list(self.x.max_dims)} does not end with the normalised {list(self.shape)}",
        )
        self.declare(self.shape, self.x.rank)

    def live(self) -> None:
        dims = self.x.dims
        self.require_live(
            dims[self.lead :] == self.shape,
            f"{list(dims)} does not end with the normalised {list(self.shape)}",
        )
        self.normalise((*dims[: self.lead], *[1] * len(self.shape)), inner=1, group_count=1)


@register("aten.native_group_norm.default", args="x weight bias batch channels area groups eps out")
class GroupNorm(Normalise):
    """x: [batch, channels, ...]; a row is the channels of one group. x gives all dims."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.groups = self.integer("groups")
        channels = (*self.x.max_dims, 0, 0)[1]
        self.require(
            self.x.rank >= 2 and self.groups >= 1 and channels % self.groups == 0,
            f"{self.groups} groups do not share the channels of {list(self.x.max_dims)}",
        )
        self.declare((channels,), 2)

    def live(self) -> None:
        batch, channels, *inner = self.x.dims
        self.require_live(channels == self.x.max_dims[1], f"x has {channels} live channels")
        self.normalise((batch, self.groups), inner=numel(inner), group_count=self.groups)
