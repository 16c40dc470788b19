"""The pass that makes calls on constants alone once and for all: rope tables, masks, weights."""

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from export.module_graph import ModuleGraph, is_random, mutates
from export.passes.patterns import aten

# The engine makes these out of next to nothing; a large constant would only take up space.
CHEAP = (
    aten.full.default,
    aten.expand.default,
    aten.repeat.default,
)
SMALL = 4096  # elements


def fold_constants(graph: ModuleGraph) -> None:
    """Replace calls whose inputs are all constants by constants that hold the results."""
    known: dict[Node, Any] = {
        node: tensor
        for node, tensor in graph.tensors.items()
        if graph.is_constant(node) and not tensor.is_meta
    }
    for node in graph.calls():
        if _is_pure(node) and all(needed in known for needed in node.all_input_nodes):
            args, options = map_arg((node.args, dict(node.kwargs)), lambda needed: known[needed])
            with torch.no_grad():
                known[node] = node.target(*args, **options)
    for node in graph.calls():
        if node in known and _is_worth_keeping(node, known):
            folded = graph.add_constant(f"folded.{node.name}", known[node])
            graph.replace(node, folded)
    graph.remove_unused()


def _is_pure(node: Node) -> bool:
    """Return whether this is a torch op on tensors that depends on its arguments alone."""
    if not isinstance(node.target, torch._ops.OpOverload) or mutates(node) or is_random(node):
        return False
    return isinstance(node.meta["val"], Tensor | list | tuple)


def _is_worth_keeping(node: Node, known: dict[Node, Any]) -> bool:
    """Return whether the known part ends here; several outputs are kept one by one, by getitem."""
    if not isinstance(known[node], Tensor) or all(user in known for user in node.users):
        return False
    return node.target not in CHEAP or known[node].numel() <= SMALL
