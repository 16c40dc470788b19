"""The pass that turns F.scaled_dot_product_attention without a cache into the engine's sdpa."""

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from export import torch_ops  # noqa: F401  (defines the op)
from export.module_graph import ModuleGraph, same_shape, shape_of
from export.passes.patterns import arguments, aten, live_size

SDPA = aten.scaled_dot_product_attention.default
ENGINE_SDPA = torch.ops.inpage.sdpa.default


def attention(graph: ModuleGraph) -> None:
    """scaled_dot_product_attention → inpage.sdpa, with is_causal as a mask and rank 4."""
    for node in graph.calls(SDPA):
        call = arguments(node)
        q, k, v = call["query"], call["key"], call["value"]
        rank = len(shape_of(q))
        if rank not in (3, 4) or not same_shape(shape_of(k), shape_of(v)) or call["dropout_p"]:
            continue  # named with the ops the engine lacks
        with graph.before(node) as emit:
            mask = _causal_mask(emit, q, k) if call["is_causal"] else call["attn_mask"]
            if rank == 3:
                q, k, v = (emit(aten.unsqueeze.default, each, 0) for each in (q, k, v))
            out = emit(ENGINE_SDPA, q, k, v, mask, call["scale"])
            if rank == 3:
                out = emit(aten.squeeze.dims, out, [0])
        graph.replace(node, out)
    graph.remove_unused()


def _causal_mask(emit: Callable[..., Node], q: Node, k: Node) -> Node:
    """Build torch's causal mask, bool [S, L]: row s sees the columns up to s."""

    def places(x: Node, dim: int) -> Node:
        length: Any = live_size(emit, x, -2)
        row = emit(aten.arange.start_step, 0, length, dtype=torch.int64)
        return emit(aten.unsqueeze.default, row, dim)

    return emit(aten.le.Tensor, places(k, 0), places(q, 1))
