"""inpage.experts: the MLP of a mixture. Each token goes through a few of many experts, and of no
others are weights read."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import ceil_div, numel
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.ops.kernels.matrices import Matrix, Weight, matrices_of, part_rows
from py_runtime.ops.registry import Op, register

ROUTE = figures_of("experts/route")
DOTS = figures_of("experts/fragments/dots")
MOST_EXPERTS, MOST_USED = ROUTE["MOST_EXPERTS"], ROUTE["MOST_USED"]
ROWS_AT_ONCE = DOTS["WORKGROUP"] // DOTS["SHARERS"]  # of a workgroup


@register(
    "inpage.experts.default",
    args="x logits used renormalised kinds gate gate_scales up up_scales down down_scales "
    "group_size out",
)
class Experts(Op):
    """x, out: [..., width]; logits: [..., experts]. Of each token the `used` experts of the largest
    logits count, by their shares of the softmax: of those alone where `renormalised`.

    gate, up: [experts * hidden, width]; down: [experts * width, hidden]. `kinds` are those of the
    three; scales are null where a kind has none.
    """

    def build(self) -> None:
        self.x, self.out = self.tensor("x", F32), self.tensor("out", F32)
        self.logits = self.tensor("logits", F32, rank=self.x.rank)
        self.width, self.experts = self.x.max_dims[-1], self.logits.max_dims[-1]
        self.used, self.renormalised = self.integer("used"), self.boolean("renormalised")
        self.require(
            self.experts <= MOST_EXPERTS and 1 <= self.used <= min(self.experts, MOST_USED),
            f"{self.used} of {self.experts} experts; up to {MOST_USED} of {MOST_EXPERTS} are taken",
        )
        self.gate_up, self.down = self._matrices()
        self.hidden = self.down.columns
        lines = numel(self.x.max_dims[:-1])
        slots = lines * self.used
        chosen = self.scratch("chosen experts", slots * 4)
        shares = self.scratch("shares of experts", slots * 4)
        hidden = self.scratch("hidden values of experts", slots * self.hidden * 4)
        self.route = self.launch(
            "experts/route", bind={"logits": self.logits, "chosen": chosen, "shares": shares}
        )
        self.first = self.launch(
            "experts/gate_up",
            plugs={**self.gate_up.octet_plugs, "gate": "silu"},
            bind={**self.gate_up.bind, "x": self.x, "chosen": chosen, "hidden": hidden},
        )
        self.second = self.launch(
            "experts/down",
            plugs=self.down.octet_plugs,
            bind={
                **self.down.bind,
                "x": hidden,
                "chosen": chosen,
                "shares": shares,
                "out": self.out,
            },
        )

    def _matrices(self) -> tuple[Matrix, Matrix]:
        kinds = self.string("kinds").split()
        self.require(len(kinds) == 3, f"{len(kinds)} kinds for gate, up and down")
        gate, up, down = map(self._weight, ("gate", "up", "down"), kinds)
        both = matrices_of(self, [gate, up], self.width)
        rows = part_rows(both)
        self.require(
            len(both) == 1
            and len(rows) == 2
            and rows[0] == rows[1]
            and rows[0] % self.experts == 0,
            f"gate and up have {list(rows)} rows of the kinds {' and '.join(kinds[:2])}: they must "
            f"be alike, and evenly of {self.experts} experts",
        )
        last = matrices_of(self, [down], rows[0] // self.experts)
        self.require(len(last) == 1, "down is larger than this device can bind at once")
        self.require(
            last[0].rows == self.experts * self.width and self.out.max_dims == self.x.max_dims,
            f"down of {last[0].rows} rows does not give {self.experts} times {self.width}",
        )
        return both[0], last[0]

    def _weight(self, name: str, kind: str) -> Weight:
        scales = f"{name}_scales"
        own = self.tensor(scales) if self.has(scales) else None
        return Weight(kind, self.tensor(name), own, self.integer("group_size"))

    def live(self) -> None:
        *lead, width = self.x.dims
        self.require_live(
            width == self.width and self.logits.dims == (*lead, self.experts),
            f"x {list(self.x.dims)} and logits {list(self.logits.dims)} do not fit {self.experts} "
            f"experts of {self.width} columns",
        )
        for tensor in (*self.gate_up.tensors, *self.down.tensors):
            self.require_live(tensor.dims == tensor.max_dims, f"{tensor.label} cannot be resized")
        self.out.resize(self.x.dims)
        lines, of_mixture = numel(lead), {"experts": self.experts, "used": self.used}
        self.route(lines, lines=lines, renormalised=int(self.renormalised), **of_mixture)
        count = lines * self.used * self.hidden
        fields = {"count": count, "rows": self.hidden, **of_mixture, **self.gate_up.fields}
        self.first(ceil_div(count, ROWS_AT_ONCE), **fields)
        count = lines * self.width
        fields = {"count": count, "rows": self.width, **of_mixture, **self.down.fields}
        self.second(ceil_div(count, ROWS_AT_ONCE), **fields)
