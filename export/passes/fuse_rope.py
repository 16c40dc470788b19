"""The pass that fuses the rotary embeddings of a query and its key into one call.

Two spellings: halves, `x * cos + rotate_half(x) * sin`, and pairs, `stack((a * cos - b * sin, a *
sin + b * cos), -1).flatten(-2)` with a the even and b the odd elements. The tables stretch over
everything but tokens and width; heads come before or after tokens. A table that is sliced or
indexed at a run of positions is taken whole, with the position.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from export import torch_ops  # noqa: F401  (defines the ops)
from export.module_graph import ModuleGraph, same_shape, same_size, shape_of
from export.passes.patterns import (
    arguments,
    aten,
    below_views,
    both_ways,
    depends_on,
    is_call,
    is_negative,
    operands,
)
from export.passes.runs import run_of

HALVES = torch.ops.inpage.apply_rotary_emb_hf.default
PAIRS = torch.ops.inpage.apply_rotary_emb.default
ADD, SUB, MUL = aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor


@dataclass(frozen=True)
class Rotation:
    """A rotated tensor as the graph spells it."""

    out: Node
    x: Node  # of out's shape, or seen as pairs [..., width / 2, 2]
    cos: Node
    sin: Node
    op: Any  # HALVES or PAIRS

    @property
    def heads_first(self) -> bool | None:
        """[..., heads, tokens, width], not [..., tokens, heads, width]; None if neither shows."""
        dims = [at - len(shape_of(self.cos)) for at in range(len(shape_of(self.cos)) - 1)]
        stretched = [at for at in dims if not same_size(shape_of(self.cos)[at], 1)]
        tokens = shape_of(self.out)[-2:-4:-1]  # as the dims -2 and -3
        for at, heads_first in ((-2, True), (-3, False)):
            if stretched == [at] and same_size(shape_of(self.cos)[at], tokens[-2 - at]):
                return heads_first
        return None

    @property
    def fits(self) -> bool:
        value = self.out.meta["val"]
        same_tables = same_shape(shape_of(self.cos), shape_of(self.sin))
        is_fitting = value.dim() in (3, 4) and value.dtype == torch.float32 and same_tables
        return is_fitting and self.heads_first is not None

    def goes_with(self, other: "Rotation") -> bool:
        """Return whether both share tables and layout, differ in heads only, and are apart."""
        if (self.cos, self.sin, self.op) != (other.cos, other.sin, other.op):
            return False
        heads = -3 if self.heads_first else -2
        a, b = list(shape_of(self.out)), list(shape_of(other.out))
        if len(a) != len(b):
            return False
        a[heads] = b[heads] = 1
        return same_shape(a, b) and not depends_on(other.x, self.out)


def fuse_rope(graph: ModuleGraph) -> None:
    """Two rotations by the same tables, of a query and its key → one call that gives both."""
    found: list[Rotation] = []
    for node in graph.calls(ADD, aten.view.default):
        rotation = _match_halves(node) or _match_pairs(node)
        if rotation is not None and rotation.fits:
            found.append(rotation)
    while len(found) >= 2:
        first = found.pop(0)
        second = next((other for other in found if first.goes_with(other)), None)
        if second is not None:
            found.remove(second)
            _fuse(graph, first, second)
    graph.sort()
    graph.remove_unused()


# Halves ----------------------------------------------------------------------------------------


def _match_halves(node: Node) -> Rotation | None:
    for straight, turned in both_ways(operands(node, ADD)):
        for x, cos in both_ways(operands(straight, MUL)):
            for half_turned, sin in both_ways(operands(turned, MUL)):
                if isinstance(cos, Node) and isinstance(sin, Node) and _turns(half_turned, x):
                    return Rotation(node, x, cos, sin, HALVES)
    return None


def _turns(node: Any, x: Any) -> bool:
    """Return whether this is cat((-second half of x, first half of x), -1)."""
    if not is_call(node, aten.cat.default) or len(node.args[0]) != 2 or not _is_last(node, 1):
        return False
    second, first = node.args[0]
    is_neg = is_call(second, aten.neg.default)
    return is_neg and _half(second.args[0]) == (x, 1) and _half(first) == (x, 0)


def _half(node: Any) -> tuple[Node, int] | None:
    """Return x and which half of it this is, first (0) or second (1), along the last dim."""
    if is_call(node, operator.getitem) and is_call(node.args[0], aten.split_with_sizes.default):
        split, which = node.args
        width = shape_of(split.args[0])[-1]
        is_even = list(split.args[1]) == [width // 2] * 2 and width % 2 == 0
        return (split.args[0], which) if is_even and _is_last(split, 2, of=split.args[0]) else None
    cut = _fixed_slice(node)
    if cut is None or cut.width % 2 or cut.step != 1:
        return None
    middle = cut.width // 2
    return {(0, middle): (cut.x, 0), (middle, cut.width): (cut.x, 1)}.get((cut.start, cut.end))


# Pairs -----------------------------------------------------------------------------------------


def _match_pairs(node: Node) -> Rotation | None:
    joined = node.args[0]
    if not is_call(node, aten.view.default) or not is_call(joined, aten.cat.default):
        return None
    parts = joined.args[0]
    if len(parts) != 2 or not _is_last(joined, 1) or not all(map(_is_column, parts)):
        return None
    real, imaginary = (part.args[0] for part in parts)
    for a, cos, b, sin in _products(real, SUB):
        for a2, sin2, b2, cos2 in _products(imaginary, ADD):
            if (a, cos, b, sin) == (a2, cos2, b2, sin2):
                x = _match_interleaved(a, b)
                if x is not None and _is_seen_as(x, shape_of(node)):
                    return Rotation(node, x, cos, sin, PAIRS)
    return None


def _is_seen_as(x: Node, shape: tuple[Any, ...]) -> bool:
    """Return whether x has this shape, or the same with its last dim in pairs."""
    pairs = (*shape[:-1], shape[-1] // 2, 2)
    return same_shape(shape_of(x), shape) or same_shape(shape_of(x), pairs)


def _is_column(node: Any) -> bool:
    """Return whether this is unsqueeze(-1)."""
    return is_call(node, aten.unsqueeze.default) and _is_last(node, 1)


def _products(node: Any, target: Any) -> list[tuple[Node, Node, Node, Node]]:
    """Return a, p, b, q of a * p ± b * q, in every order that multiplication and addition allow."""
    pair = operands(node, target)
    orders = both_ways(pair) if target is ADD else [pair] if pair else []
    return [
        (a, p, b, q)
        for left, right in orders
        for a, p in both_ways(operands(left, MUL))
        for b, q in both_ways(operands(right, MUL))
        if all(isinstance(each, Node) for each in (a, p, b, q))
    ]


def _match_interleaved(even: Any, odd: Any) -> Node | None:
    """Return the tensor that these are the even and odd, or first and second, elements of."""
    first, second = _match_every_other(even), _match_every_other(odd)
    if first is None or second is None or first[0] is not second[0]:
        return None
    return first[0] if (first[1], second[1]) == (0, 1) else None


def _match_every_other(node: Any) -> tuple[Node, int] | None:
    """Return x and 0 or 1 of x[..., 0::2], or of x[..., 0] where the last dim is a pair."""
    cut = _fixed_slice(node)
    if cut is not None:
        is_whole = cut.step == 2 and cut.end == cut.width and cut.start in (0, 1)
        return (cut.x, cut.start) if is_whole else None
    if is_call(node, aten.squeeze.dims, aten.squeeze.dim):  # of a slice with one element
        node = node.args[0]
        cut = _fixed_slice(node)
        column = cut.start if cut is not None and cut.end == cut.start + 1 else None
    elif is_call(node, aten.select.int) and _is_last(node, 1, of=node.args[0]):
        column = node.args[2] % 2 if isinstance(node.args[2], int) else None
    else:
        return None
    x = node.args[0]
    return (x, column) if column in (0, 1) and shape_of(x)[-1] == 2 else None


@dataclass(frozen=True)
class FixedSlice:
    """x[..., start:end:step] along the last dim, with numbers."""

    x: Node
    start: int
    end: int
    step: int
    width: int  # of x along the sliced dim


def _fixed_slice(node: Any) -> FixedSlice | None:
    """x[..., start:end:step] with nothing live about it."""
    if not is_call(node, aten.slice.Tensor) or not _is_last(node, 1):
        return None
    x, _, start, end, step = arguments(node).values()
    width = shape_of(x)[-1]
    start, end = start or 0, width if end is None else end
    if not all(isinstance(each, int) for each in (start, end, width)):
        return None
    return FixedSlice(x, *slice(start, end).indices(width)[:2], step, width)


def _is_last(node: Node, place: int, of: Node | None = None) -> bool:
    """Return whether the dim argument at this place (0 when absent) is the last one."""
    dim: Any = node.args[place] if len(node.args) > place else 0
    rank = len(shape_of(of or node))
    return dim % rank == rank - 1


# The call --------------------------------------------------------------------------------------


def _fuse(graph: ModuleGraph, first: Rotation, second: Rotation) -> None:
    order = {node: at for at, node in enumerate(graph.graph.nodes)}
    with graph.before(max(first.out, second.out, key=order.__getitem__)) as emit:
        xs = [_whole(emit, rotation) for rotation in (first, second)]
        swap = _swap(len(shape_of(first.out)))
        if first.heads_first:
            xs = [emit(aten.permute.default, x, swap) for x in xs]
        fused = emit(first.op, *xs, *_tables(emit, first))
        outs = [emit(operator.getitem, fused, at) for at in (0, 1)]
        if first.heads_first:
            outs = [emit(aten.permute.default, out, swap) for out in outs]
    for rotation, out in zip((first, second), outs, strict=True):
        graph.replace(rotation.out, out)


def _whole(emit: Callable[..., Node], rotation: Rotation) -> Node:
    if same_shape(shape_of(rotation.x), shape_of(rotation.out)):
        return rotation.x
    return emit(aten.view.default, rotation.x, rotation.out.args[1])


def _swap(rank: int) -> list[int]:
    """Tokens and heads change places."""
    return [*range(rank - 3), rank - 2, rank - 3, rank - 1]


def _tables(emit: Callable[..., Node], rotation: Rotation) -> tuple[Any, ...]:
    """Return the tables [rows, width], and the row of the first token where the op wants it."""
    whole = [_whole_table(table) for table in (rotation.cos, rotation.sin)]
    if rotation.op is HALVES and all(whole) and whole[0][1] == whole[1][1]:  # type: ignore[index]
        return whole[0][0], whole[1][0], whole[0][1]  # type: ignore[index]
    width = shape_of(rotation.cos)[-1]
    rows = [emit(aten.view.default, table, [-1, width]) for table in (rotation.cos, rotation.sin)]
    return (*rows, 0) if rotation.op is HALVES else tuple(rows)


def _whole_table(rows: Node) -> tuple[Node, Any] | None:
    """Return the table [positions, width] and the position, of table[start:start + tokens]."""
    source = below_views(rows)
    if is_call(source, aten.slice.Tensor):
        table, dim, start, _, step = arguments(source).values()
        is_rows = dim == 0 and step == 1 and len(shape_of(table)) == 2
        return (table, start or 0) if is_rows and not is_negative(start) else None
    if is_call(source, aten.index.Tensor) and len(source.args[1]) == 1:
        table, (index,) = source.args
        run = run_of(index)
        return (table, run.start) if run is not None and len(shape_of(table)) == 2 else None
    return None
