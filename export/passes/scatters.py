"""Writes into a part of a tensor, with ops that read: each element chooses between old and new."""

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from export.module_graph import ModuleGraph, same_shape, shape_of
from export.passes.patterns import arguments, aten, is_negative, live_size

Emit = Callable[..., Node]


def scatters(graph: ModuleGraph) -> None:
    """slice_scatter, and index_put with one index → where, over elements looked up by place."""
    for node in graph.calls(aten.slice_scatter.default, aten.index_put.default):
        is_slice = node.target is aten.slice_scatter.default
        with graph.before(node) as emit:
            spelled = _slice_scatter(emit, node) if is_slice else _index_put(emit, node)
        if spelled is not None:
            graph.replace(node, spelled)
    graph.remove_unused()


def _slice_scatter(emit: Emit, node: Node) -> Node | None:
    x, source, dim, start, _, step = arguments(node).values()
    if step != 1 or is_negative(start):
        return None
    places = emit(aten.arange.start_step, 0, live_size(emit, x, dim), dtype=torch.int64)
    shifted = emit(aten.sub.Tensor, places, start or 0)
    reached = emit(aten.ge.Scalar, shifted, 0)
    inside = emit(aten.lt.Scalar, shifted, live_size(emit, source, dim))
    written = emit(aten.logical_and.default, reached, inside)
    from_source = emit(aten.mul.Tensor, shifted, written)  # any place will do outside
    return _choose(emit, x, dim, written, emit(aten.index_select.default, source, dim, from_source))


def _index_put(emit: Emit, node: Node) -> Node | None:
    """x[..., index] = values with one index of rank 1, and x[mask] = number."""
    x, indices, values, accumulate = arguments(node).values()
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if accumulate or len(dims) != 1:
        return None
    dim, index = dims[0], indices[dims[0]]
    if index.meta["val"].dtype == torch.bool:
        return _masked_write(emit, x, index, values) if dim == 0 else None
    taken = [*shape_of(x)]
    taken[dim] = shape_of(index)[0]
    if len(shape_of(index)) != 1 or not same_shape(taken, shape_of(values)):
        return None
    size = live_size(emit, x, dim)
    places = emit(aten.arange.start_step, 0, size, dtype=torch.int64)
    from_end = emit(aten.mul.Tensor, emit(aten.lt.Scalar, index, 0), size)  # -1 is the last
    index = emit(aten.add.Tensor, index, from_end)
    column = emit(aten.unsqueeze.default, places, 1)
    row = emit(aten.unsqueeze.default, index, 0)
    hits = emit(aten.eq.Tensor, column, row)  # [size of x, size of index]
    hits = emit(aten._to_copy.default, hits, dtype=torch.int64)
    written = emit(aten.gt.Scalar, emit(aten.sum.dim_IntList, hits, [1]), 0)
    from_values = emit(aten.argmax.default, hits, 1)
    return _choose(emit, x, dim, written, emit(aten.index_select.default, values, dim, from_values))


def _masked_write(emit: Emit, x: Node, mask: Node, value: Any) -> Node | None:
    if value.meta["val"].dim() != 0:
        return None  # as many values as the mask has trues: its shape depends on data
    for _ in range(len(shape_of(x)) - len(shape_of(mask))):
        mask = emit(aten.unsqueeze.default, mask, -1)
    return emit(aten.where.self, mask, value, x)


def _choose(emit: Emit, x: Node, dim: int, written: Node, new: Node) -> Node:
    """Choose between old and new elements; written: bool [size of dim]."""
    after = len(shape_of(x)) - 1 - dim % len(shape_of(x))
    condition = emit(aten.view.default, written, [-1, *[1] * after])
    return emit(aten.where.self, condition, new, x)
