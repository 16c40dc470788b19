"""The pass that fuses attention over a KV cache that the module fills: one sdpa_with_kv_cache.

The spelling: two buffers [B, C, H, D] (or [B, H, C, D]) get this call's keys and values at [start,
start + tokens) and are attended over by F.scaled_dot_product_attention, whole or up to start +
tokens, with the causal mask for that. Heads may be shared, by enable_gqa or by repeating.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from export import torch_ops  # noqa: F401  (defines the op)
from export.module_graph import ModuleGraph, same_shape, same_size, shape_of
from export.passes.masks import is_causal_mask
from export.passes.patterns import arguments, aten, is_call, is_negative, size_of

SDPA = aten.scaled_dot_product_attention.default
FUSED = torch.ops.inpage.sdpa_with_kv_cache.default
SWAP = [0, 2, 1, 3]  # heads and tokens change places


@dataclass(frozen=True)
class CacheRead:
    """Keys or values [B, H, context, D] that come out of a cache, and what was written there."""

    buffer: Node
    written: Node  # this call's keys or values
    axis: int  # of tokens, in the buffer
    start: Any
    context: Any  # SymInt or int
    repeats: int  # how often each head stands there

    @property
    def capacity(self) -> int:
        return int(shape_of(self.buffer)[self.axis])


def fuse_cached_attention(graph: ModuleGraph) -> None:
    """slice_scatters into two buffers and attention over them → inpage.sdpa_with_kv_cache."""
    for node in graph.calls(SDPA):
        call = arguments(node)
        keys, values = (_cache_read(graph, call[name]) for name in ("key", "value"))
        if keys is not None and values is not None and _fits(graph, node, keys, values):
            _fuse(graph, node, keys, values)
    graph.remove_unused()


def _cache_read(graph: ModuleGraph, node: Any) -> CacheRead | None:
    context, repeats, axis, swapped = shape_of(node)[2], 1, 2, False
    while True:
        ungrouped = _match_repeat(node)
        if ungrouped is not None:
            node, times = ungrouped
            repeats *= times
        elif is_call(node, aten.permute.default) and node.args[1] == SWAP and not swapped:
            node, axis, swapped = node.args[0], 1, True
        else:
            break
    if is_call(node, aten.slice.Tensor):
        source, dim, start, _, step = arguments(node).values()
        if dim != axis or start not in (None, 0) or step != 1 or len(node.users) != 1:
            return None
        node = source
    if not is_call(node, aten.slice_scatter.default):
        return None
    buffer, written, dim, start, _, step = arguments(node).values()
    if (buffer, node) not in graph.updates() or set(buffer.users) != {node} or step != 1:
        return None  # something else looks at the cache
    if dim % 4 != axis or is_negative(start) or len(node.users) != 2:
        return None
    return CacheRead(buffer, written, axis, start or 0, context, repeats)


def _match_repeat(node: Any) -> tuple[Node, int] | None:
    """Return x and n of view(expand(unsqueeze(x))): each entry of one dim repeated n times."""
    if not is_call(node, aten.view.default) or not is_call(node.args[0], aten.expand.default):
        return None
    column = node.args[0].args[0]
    if not is_call(column, aten.unsqueeze.default):
        return None
    x, dim = column.args
    dim %= len(shape_of(column))
    times = shape_of(node.args[0])[dim]
    repeated = [*shape_of(x)]
    repeated[dim - 1] *= times
    expanded = [*shape_of(x)]
    expanded.insert(dim, times)
    is_repeat = dim > 0 and same_shape(expanded, shape_of(node.args[0]))
    return (x, times) if is_repeat and same_shape(repeated, shape_of(node)) else None


def _fits(graph: ModuleGraph, node: Node, keys: CacheRead, values: CacheRead) -> bool:
    call = arguments(node)
    q, tokens = call["query"], shape_of(call["query"])[2]
    same_place = (keys.axis, keys.start) == (values.axis, values.start)
    same_dims = same_shape(shape_of(keys.buffer), shape_of(values.buffer))
    if not (same_place and same_dims and keys.repeats == values.repeats):
        return False
    heads = shape_of(keys.buffer)[3 - keys.axis] * keys.repeats
    shared = shape_of(q)[1] == heads or call["enable_gqa"]
    if not shared or not same_size(tokens, shape_of(keys.written)[keys.axis]):
        return False
    if call["dropout_p"] or call["is_causal"]:  # torch counts is_causal from the first position
        return False
    start = size_of(keys.start)
    if call["attn_mask"] is None:  # right for one token that sees all there is
        return same_size(tokens, 1) and same_size(keys.context, start + 1)
    return is_causal_mask(graph, call["attn_mask"], tokens, start, keys.context, keys.capacity)


def _fuse(graph: ModuleGraph, node: Node, keys: CacheRead, values: CacheRead) -> None:
    call = arguments(node)
    with graph.before(node) as emit:
        q = emit(aten.permute.default, call["query"], SWAP)  # [B, S, Hq, D]
        written = []
        for read in (keys, values):
            graph.drop_update(read.buffer)
            if read.axis == 2:  # the engine keeps tokens first
                tensor = graph.tensors[read.buffer]
                graph.set_tensor(read.buffer, tensor.permute(SWAP).contiguous())
                written.append(emit(aten.permute.default, read.written, SWAP))
            else:
                written.append(read.written)
        out = emit(
            FUSED, q, *written, keys.buffer, values.buffer, keys.start, 1, None, 0.0, True,
            call["scale"],
        )  # fmt: skip
        swapped = emit(aten.permute.default, out, SWAP)
    graph.replace(node, swapped)
