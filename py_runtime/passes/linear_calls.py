"""Linears of every kind as a pass sees them, and the arguments of what it fuses them into."""

from collections.abc import Sequence
from dataclasses import dataclass

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import CallAt, Chain
from py_runtime.program import OpCall, op_names
from py_runtime.program.weight_kinds import BLOCK, BLOCK_KINDS, FLOAT, Q4GSW, has_scales

KINDS = {
    op_names.LINEAR: FLOAT,
    op_names.LINEAR_Q4GSW: Q4GSW,
    **{kind.linear: kind.name for kind in BLOCK_KINDS.values()},
}
LINEARS = tuple(KINDS)


@dataclass(frozen=True)
class LinearCall:
    """A linear of any kind, with its arguments by value id."""

    at: int
    call: OpCall
    kind: str
    group_size: int
    x: int
    weight: int
    scales: int | None
    bias: int | None
    out: int

    @property
    def made(self) -> CallAt:
        return CallAt(self.at, self.call)


def linear_call(chain: Chain, made: CallAt | None) -> LinearCall | None:
    """Return the linear that makes a value, if fused kernels take its kind of weight."""
    if made is None:
        return None
    at, call = made
    kind = KINDS[call.name]
    bias, weight = chain.arg(call, "bias"), chain.arg(call, "weight")
    if chain.constant(weight) is None or len(chain.dims(weight)) != 2:
        return None
    if kind == FLOAT and chain.dims(weight)[1] % 4:
        return None
    group_size: float | None = float(BLOCK)
    if kind == Q4GSW:
        group_size = chain.number(chain.arg(call, "group_size"))
    if group_size is None or not group_size.is_integer():
        return None
    return LinearCall(
        at,
        call,
        kind,
        int(group_size),
        chain.arg(call, "x"),
        weight,
        chain.arg(call, "scales") if has_scales(kind) else None,
        None if chain.is_null(bias) else bias,
        chain.arg(call, "out"),
    )


def can_join(chain: Chain, linears: Sequence[LinearCall], target: KernelTarget) -> bool:
    """Return whether one op can hold these linears (ops/kernels/matrices.py and Builder.join)."""
    first = linears[0]
    alike = all(
        (each.x, each.group_size, each.bias is None)
        == (first.x, first.group_size, first.bias is None)
        for each in linears
    )
    if not alike:
        return False
    for of in ("weight", "scales", "bias"):
        ids = [part for each in linears if (part := getattr(each, of)) is not None]
        parts = [part for value_id in ids if (part := chain.constant(value_id)) is not None]
        if len(parts) < len(ids) or any(part.gpu_bytes % 4 for part in parts):
            return False
        if sum(part.gpu_bytes for part in parts) > target.binding_bytes:
            return False
        if not all(chain.is_read_once(part.constant or "") for part in parts):
            return False  # it would be on the GPU twice
    biases = [each for each in linears[:-1] if each.bias is not None]
    return all(chain.dims(each.bias or 0) == chain.dims(each.weight)[:1] for each in biases)


def weight_args(chain: Chain, linears: Sequence[LinearCall]) -> dict[str, int | None]:
    """Return the arguments that fused_arguments.WEIGHTS names."""
    scales = [each.scales for each in linears if each.scales is not None]
    biases = [each.bias for each in linears if each.bias is not None]
    return {
        "kind": chain.add(_kind_of(linears)),
        "weights": chain.add([each.weight for each in linears]),
        "scales": chain.add(scales) if scales else None,
        "group_size": chain.add(linears[0].group_size),
        "biases": chain.add(biases) if biases else None,
    }


def _kind_of(linears: Sequence[LinearCall]) -> str:
    kinds = [each.kind for each in linears]
    return kinds[0] if len(set(kinds)) == 1 else " ".join(kinds)
