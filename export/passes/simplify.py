"""The pass that removes calls that change nothing.

These are copies, casts to the same dtype, views of the same shape, x * 1, and parts of joins that
have no elements. The graph is functional, so a copy is as good as the original. Views of views and
permutes of permutes become one.
"""

from typing import Any

from torch import Tensor
from torch.fx import Node

from export.module_graph import ModuleGraph, same_shape, same_size, shape_of
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
    """Replace calls that return their argument by it, and two views or permutes in a row by one."""
    for node in graph.calls():
        source: Any = node.args[0] if node.args else None
        if is_call(node, aten.view.default) and is_call(source, *VIEW_OPS):
            node.update_arg(0, source.args[0])
        elif is_call(node, aten.permute.default) and is_call(source, aten.permute.default):
            node.args = (source.args[0], [_order(source)[axis] for axis in _order(node)])
        elif is_call(node, aten.cat.default):
            node.update_arg(0, [part for part in source if not _is_empty(part)] or source)
        same = _same_as(node)
        if same is not None:
            graph.replace(node, same)
    graph.remove_unused()


def _same_as(node: Node) -> Node | None:
    """Return the tensor that the call returns unchanged, if it does."""
    source: Any = node.args[0] if node.args else None
    if node.target in COPIES:
        return source
    if node.target is aten.cat.default and len(source) == 1:
        return source[0]
    if not (_is_tensor(node) and _is_tensor(source)):
        return None
    if node.meta["val"].dtype == source.meta["val"].dtype and _changes_nothing(node, source):
        return source
    while node.target in VIEW_OPS and is_call(source, *VIEW_OPS):
        source = source.args[0]
        if same_shape(shape_of(source), shape_of(node)):
            return source
    return None


def _changes_nothing(node: Node, source: Node) -> bool:
    if node.target in RESHAPES:
        return same_shape(shape_of(source), shape_of(node))
    if node.target is aten.permute.default:
        order = _order(node)
        return order == sorted(order)
    if node.target in IDENTITY_NUMBERS:
        return is_number(node.args[1]) and bool(node.args[1] == IDENTITY_NUMBERS[node.target])
    return node.target is aten._to_copy.default


def _is_empty(tensor: Node) -> bool:
    return any(same_size(size, 0) for size in shape_of(tensor))


def _is_tensor(node: Any) -> bool:
    return isinstance(node, Node) and isinstance(node.meta.get("val"), Tensor)


def _order(permute: Node) -> list[int]:
    dims: Any = permute.args[1]
    return [axis % len(dims) for axis in dims]
