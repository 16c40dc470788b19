"""The pass that casts operands of where and cat to one dtype: torch promotes them by itself."""

from typing import Any

from torch.fx import Node

from export.module_graph import ModuleGraph
from export.passes.patterns import aten


def match_dtypes(graph: ModuleGraph) -> None:
    """Operands of where and cat → cast to the dtype of what the call gives."""
    for node in graph.calls(aten.where.self, aten.cat.default):
        if node.target is aten.where.self:
            condition, *values = node.args
            node.args = (condition, *_cast(graph, node, values))
        else:
            tensors, *dim = node.args
            node.args = (_cast(graph, node, tensors), *dim)


def _cast(graph: ModuleGraph, node: Node, operands: Any) -> list[Node]:
    dtype = node.meta["val"].dtype
    with graph.before(node) as emit:
        return [
            operand
            if operand.meta["val"].dtype == dtype
            else emit(aten._to_copy.default, operand, dtype=dtype)
            for operand in operands
        ]
