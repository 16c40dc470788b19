"""inpage.gated_part: gelu(gate), approximated with tanh, times one part of another tensor."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.ops.registry import Op, register


@register("inpage.gated_part.default", args="gate parts number out")
class GatedPart(Op):
    """gate: [..., width]; parts: [..., count, width], of which `number` is taken."""

    def build(self) -> None:
        self.gate = self.tensor("gate", F32)
        self.parts = self.tensor("parts", F32, rank=self.gate.rank + 1)
        self.part = self.integer("number")
        self.out = self.tensor("out", F32, rank=self.gate.rank)
        *_, count, width = self.parts.max_dims
        self.require(
            width == self.gate.max_dims[-1] and 0 <= self.part < count,
            f"part {self.part} of {list(self.parts.max_dims)} does not fit "
            f"{list(self.gate.max_dims)}",
        )
        self.apply = self.launch(
            "elementwise/gated_part",
            plugs={"gate": "gelu"},
            bind={"gate": self.gate, "parts": self.parts, "out": self.out},
        )

    def live(self) -> None:
        *lead, width = self.gate.dims
        parts = self.parts.dims
        self.require_live(
            (*parts[:-2], parts[-1]) == (*lead, width) and parts[-2] > self.part,
            f"parts {list(parts)} do not fit {list(self.gate.dims)}",
        )
        self.out.resize(self.gate.dims)
        count = numel(self.gate.dims)
        self.apply.for_each(
            count,
            count=count,
            width=width,
            stride=parts[-2] * width,
            first=self.part * width,
        )
