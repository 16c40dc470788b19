"""inpage.selective_scan: the state space of Mamba-2, a memory of fixed size that forgets.

What it gives is under the gate; a norm may follow, as an op of its own.
"""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import ceil_div
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.launch import Bindable, Launch
from py_runtime.ops.registry import Op, register

MAX_STATE = figures_of("states/fragments/scan")["MAX_STATE"]
SCAN, SCAN_WIDE = "states/selective_scan", "states/selective_scan_wide"
STARTS = "states/scan_starts"
_FIGURES = figures_of(SCAN_WIDE)
TEAM, CHUNK = _FIGURES["TEAM"], _FIGURES["CHUNK"]
AT_ONCE, ENDS, OUTS = (_FIGURES[name] for name in ("AT_ONCE", "ENDS", "OUTS"))


@register(
    "inpage.selective_scan.default",
    args="x projected decay dt_bias skip groups state start_pos out",
    mutates="state",
    carries="state",
)
class SelectiveScan(Op):
    """The selective scan over a state, and the gate of its output.

    x: [1, tokens, values of the heads, B and C of the groups]; projected: [1, tokens, columns] with
    the gates in front and the heads' time steps at the end; decay, dt_bias, skip: [heads];
    state: [1, heads, state_dim, head_dim]; out: [1, tokens, heads * head_dim].

    Where GPUs have wide kernels, many tokens go in chunks side by side; a call of few, and every
    call elsewhere, is one dispatch.
    """

    def build(self) -> None:
        self.x = self.tensor("x", F32, rank=3)
        self.projected = self.tensor("projected", F32, rank=3)
        rates = [self.tensor(name, F32, rank=1) for name in ("decay", "dt_bias", "skip")]
        self.groups = self.integer("groups")
        state = self.tensor("state", F32, rank=4)
        self.start_pos = self.live_int("start_pos")
        self.out = self.tensor("out", F32, rank=3)
        _, self.heads, self.state_dim, self.head_dim = state.max_dims
        self.columns = self.heads * self.head_dim
        self.require(
            state.max_dims[0] == 1
            and 0 < self.state_dim <= MAX_STATE
            and self.groups > 0
            and self.heads % self.groups == 0
            and all(rate.max_dims == (self.heads,) for rate in rates)
            and self._fits(),
            f"x {list(self.x.max_dims)}, {self.groups} groups and what is projected, "
            f"{list(self.projected.max_dims)}, do not fit a state {list(state.max_dims)} "
            f"(of at most {MAX_STATE} rows a head)",
        )
        target = self.builder.target
        self.wide = target.wide
        bind: dict[str, Bindable] = {
            "x": self.x,
            "projected": self.projected,
            "rates": self.join(rates),
            "state": state,
            "start_pos": self.start_pos,
            "out": self.out,
        }
        if not self.wide:
            self.at_once = self.launch(SCAN, bind=bind)
            return
        number = ceil_div(self.x.max_dims[1], CHUNK)
        size = number * self.heads * (self.state_dim * self.head_dim + 1)
        chunks = self.scratch("states of chunks", 4 * size)

        def launch(phase: int) -> Launch:
            return self.launch(
                SCAN_WIDE,
                plugs={"lanes": target.lanes_by},
                constants={"PHASE": phase, "ROWS": ceil_div(self.state_dim, TEAM)},
                bind={**bind, "chunks": chunks},
            )

        self.at_once, self.ends = launch(AT_ONCE), launch(ENDS)
        given: dict[str, Bindable] = {"state": state, "start_pos": self.start_pos, "chunks": chunks}
        self.starts = self.launch(STARTS, bind=given)
        self.outs = launch(OUTS)

    def live(self) -> None:
        self.require_live(
            self._fits() and self.start_pos.value >= 0,
            f"x {list(self.x.dims)} and what is projected, {list(self.projected.dims)}, at "
            f"position {self.start_pos.value} do not fit each other",
        )
        tokens = self.x.dims[1]
        self.out.resize((1, tokens, self.columns))
        sizes = {
            "count": self.columns,
            "tokens": tokens,
            "heads": self.heads,
            "group_count": self.groups,
            "head_dim": self.head_dim,
            "state_dim": self.state_dim,
            "row": self.projected.dims[2],
        }
        if not self.wide:
            self.at_once.for_each(self.columns, **sizes)
            return
        number, lanes = ceil_div(tokens, CHUNK), TEAM * self.columns
        if number == 1:
            self.at_once.for_each(lanes, **sizes)
            for launch in (self.ends, self.starts, self.outs):
                launch.skip()
            return
        self.at_once.skip()
        self.ends.for_each((number - 1) * lanes, **sizes)
        count = self.columns * self.state_dim
        self.starts.for_each(count, count=count, number=number, heads=self.heads)
        self.outs.for_each(number * lanes, **sizes)

    def _fits(self) -> bool:
        tokens, grouped = self.x.dims[1], self.columns + 2 * self.groups * self.state_dim
        return self.x.dims == (1, tokens, grouped) and self.projected.dims == (
            1,
            tokens,
            self.columns + grouped + self.heads,
        )
