"""The pass that turns x[..., positions] = values into a write of a slice, for runs of positions."""

import operator

from torch.fx import Node

from export.module_graph import ModuleGraph, same_shape, shape_of
from export.passes.patterns import arguments, aten, live_size
from export.passes.runs import run_of


def index_writes(graph: ModuleGraph) -> None:
    """index_put at positions start, start + 1, … → slice_scatter from start on."""
    for node in graph.calls(aten.index_put.default):
        x, indices, values, accumulate = arguments(node).values()
        places = [at for at, index in enumerate(indices) if index is not None]
        run = run_of(indices[places[0]]) if len(places) == 1 else None
        if run is None or accumulate or shape_of(indices[places[0]]) != (run.length,):
            continue
        dim = places[0]
        written = [*shape_of(x)]
        written[dim] = run.length
        if not same_shape(written, shape_of(values)):
            continue
        with graph.before(node) as emit:
            length = live_size(emit, values, dim)
            if isinstance(run.start, int) and isinstance(length, int):
                end: Node | int = run.start + length
            else:
                end = emit(operator.add, run.start, length)
            written_to = emit(aten.slice_scatter.default, x, values, dim, run.start, end)
        graph.replace(node, written_to)
    graph.remove_unused()
