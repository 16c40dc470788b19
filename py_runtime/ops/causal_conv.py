"""Convolutions over the last few tokens, channel by channel, that keep what they need of the past.

inpage.short_conv stands between two gates, the others before an activation.
"""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import Dims
from py_runtime.live.launch import Bindable
from py_runtime.ops.registry import Op, register

ARGS = "x weight state start_pos out"


class CausalConv(Op):
    """A causal convolution, channel by channel, with a state of the last tokens.

    weight: [width, taps]; state: [1, taps - 1, width]; out: [1, tokens, width]. The state is of the
    tokens before start_pos; at position 0 there are none, whatever it holds.
    """

    parts = 1  # of what is convolved of a row of x, each as wide as the convolution

    def build(self) -> None:
        self.x = self.tensor("x", F32, rank=3)
        weight = self.tensor("weight", F32, rank=2)
        self.state = self.tensor("state", F32, rank=3)
        self.start_pos = self.live_int("start_pos")
        self.out = self.tensor("out", F32, rank=3)
        self.width, self.taps = weight.max_dims
        self.has_bias = self.takes("bias") and self.has("bias")
        bias = self.tensor("bias", F32, rank=1) if self.has_bias else None
        self.first = self.integer("first") if self.takes("first") else 0  # column of x
        self.require(
            self._fits(self.x.max_dims)
            and (bias is None or bias.max_dims == (self.width,))
            and self.state.max_dims == (1, self.taps - 1, self.width),
            f"x {list(self.x.max_dims)} and a state {list(self.state.max_dims)} do not fit a "
            f"weight of {list(weight.max_dims)}",
        )
        bind: dict[str, Bindable] = {
            "x": self.x,
            "weight": weight,
            "bias": bias or weight,
            "state": self.state,
            "start_pos": self.start_pos,
            "out": self.out,
        }
        self.convolve, self.move = (self.launch("states/causal_conv", bind=bind) for _ in range(2))

    def live(self) -> None:
        dims = self.x.dims
        self.require_live(
            self._fits(dims) and self.start_pos.value >= 0,
            f"x {list(dims)} at position {self.start_pos.value} does not fit channels of "
            f"{self.width}",
        )
        tokens = dims[1]
        self.out.resize((1, tokens, self.width))
        sizes = {
            "tokens": tokens,
            "width": self.width,
            "taps": self.taps,
            "gated": int(self.parts > 1),
            "row": dims[2],
            "first": self.first,
            "has_bias": int(self.has_bias),
        }
        count = tokens * self.width
        at_once = tokens == 1
        self.convolve.for_each(count, count=count, computes=1, moves=int(at_once), **sizes)
        if at_once:
            self.move.skip()
        else:
            self.move.for_each(self.width, count=self.width, computes=0, moves=1, **sizes)

    def _fits(self, x: Dims) -> bool:
        """Return whether x has the columns; where they begin may only be said for one part."""
        columns = x[2] if self.takes("first") else self.parts * self.width
        fits = 0 <= self.first <= columns - self.width and x[2] == columns
        return self.taps > 1 and x[0] == 1 and fits


@register("inpage.short_conv.default", args=ARGS, mutates="state", carries="state")
class ShortConv(CausalConv):
    """x: [1, tokens, 3 width] holds b, c and u: out = c · conv(b · u)."""

    parts = 3


@register("inpage.conv_silu.default", args=ARGS, mutates="state", carries="state")
class ConvSilu(CausalConv):
    """x: [1, tokens, width]: out = silu(conv(x))."""


@register(
    "inpage.conv_part_silu.default",
    args="x weight bias? first state start_pos out",
    mutates="state",
    carries="state",
)
class ConvPartSilu(CausalConv):
    """x: [1, tokens, columns]: out = silu(bias + conv(those from `first` on))."""
