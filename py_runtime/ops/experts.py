"""inpage.experts: the MLP of a mixture of experts, which reads the weights of used experts only.

inpage.experts_residual adds a residual.
"""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import ceil_div, numel
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.gpu.shader_sources import all_shaders
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveTensor
from py_runtime.ops.kernels.gemm import MAX_CPU_COLUMNS
from py_runtime.ops.kernels.matrices import Matrix, Weight, matrices_of, part_rows
from py_runtime.ops.registry import Op, register

ROUTE = figures_of("experts/route")
DOTS = figures_of("experts/fragments/dots")
MAX_EXPERTS, MAX_USED = ROUTE["MAX_EXPERTS"], ROUTE["MAX_USED"]
GATES = all_shaders().alternatives("linear/fragments/gate_")
SCORINGS = ("softmax", "sigmoid")
ROWS_AT_ONCE = DOTS["WORKGROUP"] // DOTS["SHARERS"]  # of a workgroup
GIVEN = (
    "x logits choice? used renormalised scoring scale kinds gate gate_scales? gate_bias? up "
    "up_scales? up_bias? down down_scales? down_bias? group_size activation"
)


@register("inpage.experts.default", args=f"{GIVEN} out")
@register("inpage.experts_residual.default", args=f"{GIVEN} residual out")
class Experts(Op):
    """A mixture of experts. x, out: [..., width]; logits: [..., experts].

    Each token takes the `used` experts of the largest scores. With the `scoring` softmax their
    shares are those of the softmax, over these experts alone where `renormalised`; with sigmoid,
    that of each logit, and `choice` [experts] or null is added for the choice only. All shares are
    multiplied by `scale`.

    gate, up: [experts * hidden, width]; down: [experts * width, hidden]. `kinds` are those of the
    three; scales are null where a kind has none. Biases, of all three or none, are as long as rows.
    residual has out's dims.
    """

    def build(self) -> None:
        self._read_arguments()
        activation = self.string("activation")
        self.require(activation in GATES, f"the unknown activation '{activation}'")
        self.on_cpu = self.builder.target.cpu
        self.gate_up, self.down = self._matrices()
        self.hidden = self.down.columns
        widest = max(self.width, self.hidden)
        self.require(
            not self.on_cpu or widest <= MAX_CPU_COLUMNS,
            f"experts of {widest} columns; the CPU multiplies up to {MAX_CPU_COLUMNS}",
        )
        tokens = numel(self.x.max_dims[:-1])
        slots = tokens * self.used
        chosen = self.scratch("chosen experts", slots * 4)
        shares = self.scratch("shares of experts", slots * 4)
        hidden = self.scratch("hidden values of experts", slots * self.hidden * 4)
        self.route = self.launch(
            "experts/route",
            bind={
                "logits": self.logits,
                "choice": self.choice or self.logits,
                "chosen": chosen,
                "shares": shares,
            },
        )
        first_bias, last_bias = self._biases()
        self.has_bias = last_bias is not None
        self.first = self.launch(
            "experts/gate_up",
            plugs={**self.gate_up.octet_plugs, "gate": activation},
            bind={
                **self.gate_up.bind,
                "x": self.x,
                "chosen": chosen,
                "bias": first_bias or self.x,
                "hidden": hidden,
            },
        )
        self.second = self.launch(
            "experts/down",
            plugs=self.down.octet_plugs,
            bind={
                **self.down.bind,
                "x": hidden,
                "chosen": chosen,
                "shares": shares,
                "bias": last_bias or self.x,
                "residual": self.residual or self.x,
                "out": self.out,
            },
        )

    def _read_arguments(self) -> None:
        """Read all arguments but the weights."""
        self.x, self.out = self.tensor("x", F32), self.tensor("out", F32)
        self.logits = self.tensor("logits", F32, rank=self.x.rank)
        self.width, self.experts = self.x.max_dims[-1], self.logits.max_dims[-1]
        self.used, self.renormalised = self.integer("used"), self.boolean("renormalised")
        self.require(
            self.experts <= MAX_EXPERTS and 1 <= self.used <= min(self.experts, MAX_USED),
            f"{self.used} of {self.experts} experts; up to {MAX_USED} of {MAX_EXPERTS} are taken",
        )
        self.scoring, self.scale = self.string("scoring"), self.number("scale")
        self.require(self.scoring in SCORINGS, f"experts scored by {self.scoring}")
        self.choice = self.tensor("choice", F32) if self.has("choice") else None
        self.require(
            self.choice is None
            or (self.scoring == "sigmoid" and self.choice.max_dims == (self.experts,)),
            f"a bias of the choice that {self.experts} experts by {self.scoring} do not have",
        )
        self.residual = self.tensor("residual", F32) if self.takes("residual") else None
        if self.residual is not None:
            self.require(
                self.residual.max_dims == self.x.max_dims,
                f"{list(self.residual.max_dims)} cannot be added to {list(self.x.max_dims)}",
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

    def _biases(self) -> tuple[Bindable | None, LiveTensor | None]:
        """Return the bias of gate and up, one after the other, and that of down."""
        rows = {"gate": self.gate_up.rows // 2, "up": self.gate_up.rows // 2}
        rows["down"] = self.down.rows
        found = {
            name: self.tensor(f"{name}_bias", F32) for name in rows if self.has(f"{name}_bias")
        }
        self.require(
            not found
            or {name: bias.max_dims for name, bias in found.items()}
            == {name: (count,) for name, count in rows.items()},
            "biases of experts that are not those of gate, up and down",
        )
        if not found:
            return None, None
        return self.join([found["gate"], found["up"]]), found["down"]

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
        if self.residual is not None:
            self.require_live(
                self.residual.dims == self.x.dims,
                f"{list(self.residual.dims)} cannot be added to {list(self.x.dims)} here",
            )
        for tensor in (*self.gate_up.tensors, *self.down.tensors):
            self.require_live(tensor.dims == tensor.max_dims, f"{tensor.label} cannot be resized")
        self.out.resize(self.x.dims)
        tokens, of_mixture = numel(lead), {"experts": self.experts, "used": self.used}
        self.route(
            tokens,
            tokens=tokens,
            renormalised=int(self.renormalised),
            by_sigmoid=int(self.scoring == "sigmoid"),
            has_choice=int(self.choice is not None),
            scale=self.scale,
            **of_mixture,
        )
        of_mixture["has_bias"] = int(self.has_bias)
        count = tokens * self.used * self.hidden
        fields = {"tokens": tokens, "count": count, "rows": self.hidden, **of_mixture}
        groups = ceil_div(count, ROWS_AT_ONCE)
        if self.on_cpu:  # which reads an expert's rows once for all of its tokens
            groups = self.experts * ceil_div(self.hidden, ROWS_AT_ONCE)
        self.first(groups, **fields, **self.gate_up.fields)
        count = tokens * self.width
        of_mixture["has_residual"] = int(self.residual is not None)
        fields = {"tokens": tokens, "count": count, "rows": self.width, **of_mixture}
        groups = ceil_div(self.width if self.on_cpu else count, ROWS_AT_ONCE)
        self.second(groups, **fields, **self.down.fields)
