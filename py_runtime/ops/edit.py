"""inpage.edit: a value that is changed at some positions, by numbers that the host writes."""

from py_runtime.base.dtypes import F32, I32
from py_runtime.base.shapes import numel
from py_runtime.ops.registry import Op, register


@register("inpage.edit.default", args="x gain bias span start_pos out")
class Edit(Op):
    """out = x + gain * x + bias at positions of span [2], which begins and ends there, else x.

    x: [1, tokens, ...]; gain and bias: [rows, width] of a token's numbers, a row for each position
    of the span, or one row for all.
    """

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.out = self.tensor("out", F32, rank=self.x.rank)
        self.gain, self.bias = (self.tensor(name, F32, rank=2) for name in ("gain", "bias"))
        span = self.tensor("span", I32, rank=1)
        self.start_pos = self.live_int("start_pos")
        self.rows, width = self.gain.max_dims
        self.require(
            self.x.rank >= 3
            and self.x.max_dims[0] == 1
            and self.bias.max_dims == self.gain.max_dims
            and numel(self.x.max_dims[2:]) == width
            and span.max_dims == (2,),
            f"gain {list(self.gain.max_dims)}, bias {list(self.bias.max_dims)} and span "
            f"{list(span.max_dims)} do not fit {list(self.x.max_dims)}",
        )
        self.apply = self.launch(
            "elementwise/edit",
            bind={
                "x": self.x,
                "gain": self.gain,
                "bias": self.bias,
                "span": span,
                "out": self.out,
                "start_pos": self.start_pos,
            },
        )

    def live(self) -> None:
        self.out.resize(self.x.dims)
        count, width = numel(self.x.dims), self.gain.max_dims[1]
        self.require_live(
            numel(self.x.dims[2:]) == width, f"rows of {list(self.x.dims)} are not {width} numbers"
        )
        self.apply.for_each(count, count=count, width=width, rows=self.rows)
