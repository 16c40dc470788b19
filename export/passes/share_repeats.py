"""The pass that makes equal calls on equal arguments once: tables sliced in every layer, masks."""

from collections.abc import Hashable
from typing import Any

import torch
from torch.fx import Node

from export.module_graph import ModuleGraph, is_random, mutates


def share_repeats(graph: ModuleGraph) -> None:
    """Replace a call with the op and arguments of an earlier one by that one's result."""
    seen: dict[Hashable, Node] = {}
    for node in graph.calls():
        is_call_of_calls = isinstance(node.target, torch._ops.HigherOrderOperator)
        if is_call_of_calls or mutates(node) or is_random(node):
            continue
        first = seen.setdefault(_key(node), node)
        if first is not node:
            graph.replace(node, first)


def _key(node: Node) -> Hashable:
    return node.target, _hashable(node.args), _hashable(sorted(node.kwargs.items()))


def _hashable(value: Any) -> Hashable:
    """Numbers keep their type: 1 and 1.0 and True are different arguments."""
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)
    return value if isinstance(value, Node) else (type(value), repr(value))
