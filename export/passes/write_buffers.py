"""The pass that writes buffers in place that get a new value, by the engine's update_cache.

It writes rows [start, start + tokens) of [before, rows, 1, after]; any slice of any tensor can be
seen that way, and a whole buffer is rows from 0 on. Calls that need the old value read a copy of
it.
"""

from math import prod
from typing import Any

import torch
from torch.fx import Node

from export import torch_ops  # noqa: F401  (defines the op)
from export.errors import ExportError
from export.module_graph import ModuleGraph, mutates, shape_of
from export.passes.patterns import arguments, aten, is_call, is_negative

UPDATE = torch.ops.inpage.update_cache.default
IN_PLACE_CALL = torch.ops.higher_order.auto_functionalized_v2


def restore_in_place_calls(graph: ModuleGraph) -> None:
    """Restore custom ops that write buffers, which torch has made functional."""
    for node in graph.calls(IN_PLACE_CALL):
        op, given = node.args[0], dict(node.kwargs)
        bases: Any = given.pop("_all_bases")
        for argument in op._schema.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                base = bases[given.pop(f"_{argument.name}_base_index")]
                if base not in graph.updated:
                    raise ExportError(
                        f"{op} writes into its argument '{argument.name}', which must be a whole "
                        "buffer of the module; register it with register_buffer"
                    )
                given[argument.name] = base
                _keep_old_value(graph, base, node)
        names = [argument.name for argument in op._schema.arguments]
        with graph.before(node) as emit:
            call = emit(op, *(given[name] for name in names))
        for user in list(node.users):
            place = user.args[1]
            graph.replace(user, call if place == 0 else bases[place - 1])
        graph.graph.erase_node(node)
    for buffer, value in graph.updates():
        if value is buffer:
            graph.drop_update(buffer)


def write_buffers(graph: ModuleGraph) -> None:
    """Turn new values of buffers at the end of the graph into update_cache, in place."""
    for buffer, value in graph.updates():
        if any(mutates(user) for user in buffer.users):
            raise ExportError(
                f"buffer '{graph.names[buffer]}' is written by a custom op and by the module "
                "itself; write it in one way"
            )
        if _is_slice_write(buffer, value):
            _write_slice(graph, buffer, value)
        else:
            _write_all(graph, buffer, value)
        graph.drop_update(buffer)
    graph.remove_unused()


def _is_slice_write(buffer: Node, value: Node) -> bool:
    if not is_call(value, aten.slice_scatter.default):
        return False
    target, _, _, start, _, step = arguments(value).values()
    return target is buffer and step == 1 and not is_negative(start)


def _write_slice(graph: ModuleGraph, buffer: Node, value: Node) -> None:
    _, written, dim, start, _, _ = arguments(value).values()
    dims = shape_of(buffer)
    dim %= len(dims)
    if len(dims) in (3, 4) and dim == len(dims) - 3:  # as update_cache sees it anyway
        _keep_old_value(graph, buffer, value)
        with graph.before(value) as emit:
            new = emit(UPDATE, written, buffer, start or 0)
    else:
        before, after = prod(dims[:dim]), prod(dims[dim + 1 :])
        _store_as(graph, buffer, [before, dims[dim], 1, after], value)
        with graph.before(value) as emit:
            written = emit(aten.view.default, written, [before, -1, 1, after])
            stored = emit(UPDATE, written, buffer, start or 0)
            new = emit(aten.view.default, stored, list(dims))
    graph.replace(value, new)


def _write_all(graph: ModuleGraph, buffer: Node, value: Node) -> None:
    rows = [prod(shape_of(buffer)), 1, 1]
    _store_as(graph, buffer, rows)
    with graph.before(graph.output_node) as emit:
        emit(UPDATE, emit(aten.view.default, value, rows), buffer, 0)


# The engine copies what it is asked to view of a tensor that is written in place.


def _keep_old_value(graph: ModuleGraph, buffer: Node, writer: Node) -> None:
    """Give calls after the writer that want the value from before it a copy."""
    order = {node: at for at, node in enumerate(graph.graph.nodes)}
    late = [user for user in buffer.users if order[user] > order[writer]]
    if late:
        with graph.before(writer) as emit:
            old = emit(aten.view.default, buffer, list(shape_of(buffer)))
        for node in late:
            node.replace_input_with(buffer, old)


def _store_as(
    graph: ModuleGraph, buffer: Node, dims: list[int], writer: Node | None = None
) -> None:
    """Store the buffer with other dims.

    Nodes that read it see the old ones, by a view at the start.
    """
    reading = [node for node in buffer.users if node is not writer]
    if reading:
        with graph.before(graph.calls()[0]) as emit:
            old = emit(aten.view.default, buffer, list(shape_of(buffer)))
        for node in reading:
            node.replace_input_with(buffer, old)
    graph.set_tensor(buffer, graph.tensors[buffer].reshape(dims))
