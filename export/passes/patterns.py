"""Questions that the passes ask about a node: which op it calls, with which arguments."""

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

aten = torch.ops.aten
VIEW_OPS = (
    aten.view.default,
    aten._unsafe_view.default,
    aten.unsqueeze.default,
    aten.squeeze.dims,
    aten.squeeze.dim,
)


def is_call(node: Any, *targets: Any) -> bool:
    """Return whether this is a node that calls one of these ops."""
    return isinstance(node, Node) and node.op == "call_function" and node.target in targets


def arguments(node: Node) -> dict[str, Any]:
    """Return all arguments by name, defaults filled in."""
    schema = node.target._schema.arguments
    given = dict(zip((argument.name for argument in schema), node.args, strict=False))
    given.update(node.kwargs)
    return {a.name: given.get(a.name, a.default_value) for a in schema}


def operands(node: Any, *targets: Any) -> tuple[Any, Any] | None:
    """Return both operands of a call of one of these binary ops.

    A scaled one (alpha) is no match.
    """
    if not is_call(node, *targets) or node.kwargs.get("alpha", 1) != 1 or len(node.args) != 2:
        return None
    return node.args[0], node.args[1]


def both_ways(pair: tuple[Any, Any] | None) -> list[tuple[Any, Any]]:
    """Return both orders of operands that may stand either way round."""
    return [pair, pair[::-1]] if pair else []


def is_number(value: Any) -> bool:
    """Return whether the value is an int or a float; True and False are neither."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_negative(place: Any) -> bool:
    """Return whether this is a fixed position that counts from the end."""
    return isinstance(place, int) and place < 0


def size_of(value: Any) -> Any:
    """Return a live scalar's SymInt, or the int itself."""
    return value.meta["val"] if isinstance(value, Node) else value


def below_views(node: Any) -> Any:
    """Return what a chain of views shows."""
    while is_call(node, *VIEW_OPS):
        node = node.args[0]
    return node


def depends_on(node: Node, source: Node) -> bool:
    """Return whether the source is needed, however far up, to compute the node."""
    seen: set[Node] = set()
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if at is source:
            return True
        if at not in seen:
            seen.add(at)
            waiting.extend(at.all_input_nodes)
    return False


def live_size(emit: Callable[..., Node], node: Node, dim: int) -> Node | int:
    """Return a tensor's size as an argument for another call."""
    size = node.meta["val"].shape[dim]
    return size if isinstance(size, int) else emit(aten.sym_size.int, node, dim)
