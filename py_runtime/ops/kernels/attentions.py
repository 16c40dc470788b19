"""The attention that suits a device, over tensors or over KV caches."""

from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.ops.kernels.cpu_attention import CpuAttention
from py_runtime.ops.kernels.streaming_attention import (
    Problem,
    StreamingAttention,
    problem_over_cache,
)
from py_runtime.ops.registry import Op


def make_attention(
    op: Op,
    most: Problem,
    max_context: int,
    bind: dict[str, Bindable],  # q, k, v and what the mask's fragment binds
    out: Bindable,
    mask: str,  # attention/fragments/mask_*
    window: int | None = None,  # of a window mask
    softcap: float | None = None,
    sinks: LiveTensor | None = None,  # [query heads]: scores without a value
) -> StreamingAttention | CpuAttention:
    """Return the launches of an attention op for the op's device."""
    kind = CpuAttention if op.builder.target.cpu else StreamingAttention
    return kind(op, most, max_context, bind, out, mask, window, softcap, sinks)


def attention_over_cache(
    op: Op,
    q: LiveTensor,
    caches: tuple[LiveTensor, LiveTensor],  # of keys and values
    start_pos: LiveInt,
    out: Bindable,
    window: int | None,
    softcap: float | None,
    sinks: LiveTensor | None,
) -> StreamingAttention | CpuAttention:
    """Return causal attention over all positions of the caches, or over a window of them."""
    k, v = caches
    return make_attention(
        op,
        problem_over_cache(q.max_dims, k.max_dims),
        k.max_dims[-3],
        {"q": q, "k": k, "v": v, "start_pos": start_pos},
        out,
        "causal" if window is None else "window",
        window,
        softcap,
        sinks,
    )
