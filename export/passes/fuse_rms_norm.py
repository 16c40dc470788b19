"""The pass that fuses x * rsqrt(mean(x²) + eps) * weight, in the usual spellings: one rms_norm.

A layer norm is one too, of x - mean(x).
"""

from typing import Any

import torch
from torch.fx import Node

from export import torch_ops  # noqa: F401  (defines the op)
from export.module_graph import ModuleGraph, shape_of
from export.passes.patterns import aten, both_ways, is_call, is_number, operands

RMS_NORM = torch.ops.inpage.rms_norm.default
MUL = (aten.mul.Tensor,)
ADD = (aten.add.Tensor, aten.add.Scalar)


def fuse_rms_norm(graph: ModuleGraph) -> None:
    """Fuse x * rsqrt(mean(x²) + eps) * weight to inpage.rms_norm; without a weight, one of ones."""
    ones: dict[int, Node] = {}
    for node in graph.calls(aten.mul.Tensor, aten.div.Tensor):
        found = _match_norm(node)
        if found is None:
            continue
        x, eps = found
        last, weight = _match_weight(node)
        if weight is None:
            width = int(shape_of(x)[-1])
            if width not in ones:
                ones[width] = graph.add_constant(f"ones_{width}", torch.ones(width))
            weight = ones[width]
        with graph.before(last) as emit:
            fused = emit(RMS_NORM, x, weight, eps)
        graph.replace(last, fused)
    graph.remove_unused()


def _match_norm(node: Node) -> tuple[Node, float] | None:
    """Return x and eps of x * rsqrt(mean(x²) + eps) or x / sqrt(mean(x²) + eps)."""
    for x, scale in both_ways(operands(node, *MUL)):
        if is_call(scale, aten.rsqrt.default):
            return _of_mean_square(x, scale.args[0])
    pair = operands(node, aten.div.Tensor)
    if pair and is_call(pair[1], aten.sqrt.default):
        return _of_mean_square(pair[0], pair[1].args[0])
    return None


def _of_mean_square(x: Any, shifted: Any) -> tuple[Node, float] | None:
    for mean, eps in both_ways(operands(shifted, *ADD)):
        if is_number(eps) and is_call(mean, aten.mean.dim) and _is_mean_of_rows(mean, x):
            return x, float(eps)
    return None


def _is_mean_of_rows(mean: Node, x: Any) -> bool:
    """Return whether this is the mean of x² over the last dim, which is kept."""
    given: tuple[Any, ...] = (*mean.args, False)
    square, dims, keepdim = given[:3]
    rank, dtype = x.meta["val"].dim(), x.meta["val"].dtype
    if [dim % rank for dim in dims] != [rank - 1] or not keepdim:
        return False
    if dtype != torch.float32 or not isinstance(shape_of(x)[-1], int):
        return False
    is_power = is_call(square, aten.pow.Tensor_Scalar) and square.args == (x, 2)
    return is_power or operands(square, *MUL) == (x, x)


def _match_weight(node: Node) -> tuple[Node, Node | None]:
    """Return the multiplication by a weight that follows, if nothing else uses the node.

    Its weight.
    """
    if len(node.users) == 1:
        (user,) = node.users
        for normalised, weight in both_ways(operands(user, *MUL)):
            if normalised is node and isinstance(weight, Node):
                value = weight.meta["val"]
                fits = value.dim() == 1 and value.shape[0] == shape_of(node)[-1]
                if fits and value.dtype == torch.float32:
                    return user, weight
    return node, None
