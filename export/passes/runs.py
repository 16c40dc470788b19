"""Runs of positions (start, start + 1, …), which is how a module says where its tokens stand."""

from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from export.passes.patterns import (
    arguments,
    aten,
    below_views,
    both_ways,
    is_call,
    operands,
    size_of,
)


@dataclass(frozen=True)
class Run:
    """A run: start, start + 1, … in so many steps; either may be live."""

    start: Node | int
    length: Any  # SymInt or int


def run_of(node: Any) -> Run | None:
    """Return the run in an integer tensor, arange(start, end) or arange(n) + start.

    None if none.
    """
    node = below_views(node)
    if is_call(node, aten._to_copy.default):
        return run_of(node.args[0])
    if is_call(node, aten.arange.start_step):
        start, end, step, *_ = arguments(node).values()
        return Run(start, size_of(end) - size_of(start)) if step == 1 else None
    for tensor, shift in both_ways(operands(node, aten.add.Tensor, aten.add.Scalar)):
        is_scalar = isinstance(shift, int) or (isinstance(shift, Node) and _is_live_int(shift))
        run = run_of(tensor) if is_scalar else None
        if run is not None and run.start == 0:
            return Run(shift, run.length)
    return None


def _is_live_int(node: Node) -> bool:
    return not hasattr(node.meta["val"], "dtype")
