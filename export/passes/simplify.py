"""Calls that change nothing go: copies, casts to the same dtype, views of the same shape, x * 1.

The graph is functional, so a copy is as good as the original. Views of views and permutes of
permutes become one.
"""

from typing import Any

from torch import Tensor
from torch.fx import Node

from export.module_graph import ModuleGraph, same_shape, shape_of
from export.passes.patterns import VIEW_OPS, aten, is_call, is_number

COPIES = (
    aten.clone.default,
    aten.alias.default,
    aten.detach.default,
    aten.lift_fresh_copy.default,
    aten.contiguous.default,
)
# Ops that give the elements in their order; with the same shape they give the same tensor.
RESHAPES = (*VIEW_OPS, aten.expand.default, aten.repeat.default, aten.slice.Tensor)
IDENTITY_NUMBERS = {
    aten.mul.Tensor: 1,
    aten.mul.Scalar: 1,
    aten.div.Tensor: 1,
    aten.div.Scalar: 1,
    aten.add.Tensor: 0,
    aten.add.Scalar: 0,
    aten.sub.Tensor: 0,
    aten.sub.Scalar: 0,
}


def simplify(graph: ModuleGraph) -> None:
    for node in graph.calls():
        source: Any = node.args[0] if node.args else None
        if is_call(node, aten.view.default) and is_call(source, *VIEW_OPS):
            node.update_arg(0, source.args[0])
        elif is_call(node, aten.permute.default) and is_call(source, aten.permute.default):
            node.args = (source.args[0], [_order(source)[axis] for axis in _order(node)])
        if _changes_nothing(node):
            graph.replace(node, node.args[0])  # type: ignore[arg-type]
    graph.remove_unused()


def _changes_nothing(node: Node) -> bool:
    if node.target in COPIES:
        return True
    source = node.args[0] if node.args else None
    if not (_is_tensor(node) and _is_tensor(source)):
        return False
    if node.meta["val"].dtype != source.meta["val"].dtype:  # type: ignore[union-attr]
        return False
    if node.target in RESHAPES:
        return same_shape(shape_of(source), shape_of(node))  # type: ignore[arg-type]
    if node.target is aten.permute.default:
        order = _order(node)
        return order == sorted(order)
    if node.target in IDENTITY_NUMBERS:
        return is_number(node.args[1]) and node.args[1] == IDENTITY_NUMBERS[node.target]
    return node.target is aten._to_copy.default


def _is_tensor(node: Any) -> bool:
    return isinstance(node, Node) and isinstance(node.meta.get("val"), Tensor)


def _order(permute: Node) -> list[int]:
    dims: Any = permute.args[1]
    return [axis % len(dims) for axis in dims]
