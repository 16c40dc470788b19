"""The test for a causal mask: its part of the graph is computed at chosen sizes and compared.

That asks for no particular spelling, and a window, a prefix or an off-by-one shows at the corners
(one token at the end of a full context, the longest prompt at the start).
"""

from typing import Any

import sympy
import torch
from torch import SymInt, Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from export.module_graph import ModuleGraph, mutates

UNSEEN = -1e30  # a float mask at most this hides a position as well as minus infinity does


class NotKnownError(Exception):
    """An error of a mask that depends on data, not on sizes alone."""


def is_causal_mask(
    graph: ModuleGraph, mask: Node, tokens: Any, start: Any, context: Any, capacity: int
) -> bool:
    """Token t of `tokens` must see positions 0 … start + t of `context`, at all sizes.

    tokens, start and context are sizes: ints or SymInts.
    """
    try:
        return all(
            _is_causal_at(graph, mask, sizes, tokens, start, context)
            for sizes in _chosen_sizes(tokens, start, capacity)
        )
    except NotKnownError:
        return False


def causal_rows(tokens: int, start: int, context: int) -> Tensor:
    """Return the causal mask as bool [tokens, context]."""
    return torch.arange(context)[None, :] <= torch.arange(tokens)[:, None] + start


def _is_causal_at(
    graph: ModuleGraph, mask: Node, sizes: dict[Any, int], tokens: Any, start: Any, context: Any
) -> bool:
    rows, first, columns = (_size_at(size, sizes) for size in (tokens, start, context))
    value = _Evaluation(graph, sizes).of(mask)
    if value.dim() < 2 or value.numel() != value.shape[-1] * value.shape[-2]:
        return False  # it may differ from head to head
    if value.dtype != torch.bool:
        if not ((value == 0) | (value <= UNSEEN)).all():
            return False
        value = value == 0
    value = value.reshape(value.shape[-2:])
    return value.shape == (rows, columns) and bool(
        (value == causal_rows(rows, first, columns)).all()
    )


def _chosen_sizes(tokens: Any, start: Any, capacity: int) -> list[dict[Any, int]]:
    """Values for the symbols of tokens and start; whatever else is live is not known."""
    if isinstance(tokens, int):
        lengths = [tokens]
    else:
        upper = tokens.node.shape_env.bound_sympy(tokens.node.expr).upper
        most = int(min(capacity, upper))
        lengths = sorted({length for length in (1, 2, 3, most) if length <= most})
    chosen = []
    for length in lengths:
        for first in (
            sorted({0, 1, 5, capacity - length}) if not isinstance(start, int) else [start]
        ):
            if 0 <= first <= capacity - length:
                chosen.append({**_symbol(tokens, length), **_symbol(start, first)})
    return chosen


def _symbol(size: Any, value: int) -> dict[Any, int]:
    if isinstance(size, int):
        return {}
    expression = size.node.expr
    if not expression.is_Symbol:
        raise NotKnownError
    return {expression: sympy.Integer(value)}


def _size_at(size: Any, sizes: dict[Any, int]) -> int:
    if not isinstance(size, SymInt):
        return int(size)
    expression = size.node.expr.xreplace(sizes)
    if not expression.is_number:
        raise NotKnownError
    return int(expression)


class _Evaluation:
    """The values of nodes that depend on sizes and constants alone."""

    def __init__(self, graph: ModuleGraph, sizes: dict[Any, int]) -> None:
        self.graph = graph
        self.sizes = sizes
        self.known: dict[Node, Any] = {}

    def of(self, node: Node) -> Any:
        if node not in self.known:
            self.known[node] = self._compute(node)
        return self.known[node]

    def _compute(self, node: Node) -> Any:
        value = node.meta["val"]
        if isinstance(value, SymInt | int):
            return _size_at(value, self.sizes)
        if self.graph.is_constant(node) and not self.graph.tensors[node].is_meta:
            return self.graph.tensors[node]
        if node.op != "call_function" or mutates(node):
            raise NotKnownError
        args, options = map_arg((node.args, dict(node.kwargs)), self.of)
        return node.target(*args, **options)
