"""inpage.gated_delta: a memory of keys and values of fixed size, corrected token by token.

A norm of each head under a gate follows.
"""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.ops.registry import Op, register

MAX_KEYS = figures_of("states/fragments/delta")["MAX_KEYS"]
DELTA, DELTA_WIDE = "states/gated_delta", "states/gated_delta_wide"
NORM, NORM_WIDE = "states/gated_norm", "states/gated_norm_wide"
TEAM = figures_of(DELTA_WIDE)["TEAM"]


@register(
    "inpage.gated_delta.default",
    args="x z b a decay dt_bias norm eps key_heads tiled state start_pos out",
    mutates="state",
    carries="state",
)
class GatedDelta(Op):
    """The gated delta rule over a state, and the gated norm of its output.

    x: [1, tokens, q and k of the key heads, v]; z, out: [1, tokens, value heads * value_dim];
    b, a: [1, tokens, value heads], or one tensor of both; decay, dt_bias: [value heads];
    norm: [value_dim]; state: [1, value heads, key_dim, value_dim].

    Value heads share key heads: neighbours the same one, or, where `tiled`, those that lie so many
    apart as there are key heads.
    """

    def build(self) -> None:
        self.x = self.tensor("x", F32, rank=3)
        self.z = self.tensor("z", F32, rank=3)
        self.b, self.a = self.tensor("b", F32, rank=3), self.tensor("a", F32, rank=3)
        decay, dt_bias = self.tensor("decay", F32, rank=1), self.tensor("dt_bias", F32, rank=1)
        norm = self.tensor("norm", F32, rank=1)
        self.eps, self.tiled = self.number("eps"), self.boolean("tiled")
        self.key_heads = self.integer("key_heads")
        state = self.tensor("state", F32, rank=4)
        self.start_pos = self.live_int("start_pos")
        self.out = self.tensor("out", F32, rank=3)
        _, self.value_heads, self.key_dim, self.value_dim = state.max_dims
        heads = (self.value_heads,)
        self.require(
            state.max_dims[0] == 1
            and 0 < self.key_dim <= MAX_KEYS
            and self.key_heads > 0
            and self.value_heads % self.key_heads == 0
            and decay.max_dims == dt_bias.max_dims == heads
            and norm.max_dims == (self.value_dim,)
            and self._fits(),
            f"x {list(self.x.max_dims)} and {self.key_heads} key heads do not fit a state "
            f"{list(state.max_dims)} (keys may be {MAX_KEYS} wide)",
        )
        target = self.builder.target
        self.wide, self.norm_by_rows = target.wide, target.wide or target.cpu
        plugs = {"lanes": target.lanes_by} if self.wide else {}
        self.delta = self.launch(
            DELTA_WIDE if self.wide else DELTA,
            plugs=plugs,
            constants={"ROWS": ceil_div(self.key_dim, TEAM)} if self.wide else {},
            bind={
                "x": self.x,
                "b": self.b,
                "a": self.a,
                "decay": decay,
                "dt_bias": dt_bias,
                "state": state,
                "start_pos": self.start_pos,
                "out": self.out,
            },
        )
        self.norm = self.launch(
            NORM_WIDE if self.norm_by_rows else NORM,
            plugs={"lanes": target.lanes_by} if self.norm_by_rows else {},
            bind={"z": self.z, "weight": norm, "out": self.out},
        )

    def live(self) -> None:
        self.require_live(
            self._fits() and self.start_pos.value >= 0,
            f"x {list(self.x.dims)}, z {list(self.z.dims)}, b {list(self.b.dims)} and a "
            f"{list(self.a.dims)} at position {self.start_pos.value} do not fit each other",
        )
        tokens = self.x.dims[1]
        columns = self.value_heads * self.value_dim
        self.out.resize((1, tokens, columns))
        self.delta.for_each(
            TEAM * columns if self.wide else columns,
            count=columns,
            tokens=tokens,
            value_heads=self.value_heads,
            key_heads=self.key_heads,
            key_dim=self.key_dim,
            value_dim=self.value_dim,
            tiled=int(self.tiled),
            gates_row=self.b.dims[2],
            a_column=self.value_heads if self._are_one else 0,
        )
        rows = tokens * self.value_heads
        normalise = self.norm if self.norm_by_rows else self.norm.for_each  # a workgroup a row
        normalise(rows, rows=rows, width=self.value_dim, eps=self.eps)

    @property
    def _are_one(self) -> bool:
        """True where b and a are the halves of each row of one tensor."""
        return self.b.id == self.a.id

    def _fits(self) -> bool:
        tokens = self.x.dims[1]
        values = self.value_heads * self.value_dim
        gates = (1, tokens, self.value_heads * (2 if self._are_one else 1))
        return (
            self.x.dims == (1, tokens, 2 * self.key_heads * self.key_dim + values)
            and self.z.dims == (1, tokens, values)
            and self.b.dims == self.a.dims == gates
        )
