"""Caches whose oldest rows go while the others move up, to positions that lie so much lower.

What a key was turned by grows with its position alone, so that it is turned back by the angle of
the rows that went. That happens on the host, in f32, and caches of fewer bits are rounded once
more; values move as they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from py_runtime.base.cached_blocks import as_held, held_values
from py_runtime.base.shapes import numel
from py_runtime.gpu import Read, Write
from py_runtime.graph.graph import Graph
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import BoolValue, IntValue, OpCall, Program, TensorValue, op_names

FILLING = (op_names.QKV_ROTARY_CACHE, op_names.QKV_ROTARY_CACHE.replace(".default", ".of_sum"))
AT_ONCE = 8 << 20  # bytes of a cache that are moved at a time
CLOSE = 5e-2  # sines of angles that should be the same: positions come as f32


@dataclass(frozen=True)
class Filled:
    """The caches that one op fills, and the tables that turn its keys, where there are any."""

    k_cache: int
    v_cache: int
    cos: int | None = None
    sin: int | None = None
    neighbours: bool = False  # pairs lie side by side, else half of what turns apart


def slidable_caches(program: Program, context: int) -> list[Filled] | None:
    """Return the caches of a program; None where rows of some cannot be moved up.

    Those of a window's ring have let go of the rows between; and keys that the graph turns by
    anything but a table of positions, or in ops of their own, are not known how to turn back.
    """
    found: list[Filled] = []
    for call in program.ops:
        row = REGISTRY[call.name]
        if row.carries:
            return None
        if not {"k_cache", "v_cache"} & row.mutates:
            continue
        filled = _filled(program, call) if call.name in FILLING else None
        if filled is None or _rows(program, filled.k_cache) < context:
            return None
        found.append(filled)
    return found or None


def _filled(program: Program, call: OpCall) -> Filled | None:
    names = REGISTRY[call.name].args
    given = dict(zip(names, call.args, strict=True))
    caches = given["k_cache"], given["v_cache"]
    cos, sin = (program.values[given[name]] for name in ("cos", "sin"))
    if not isinstance(cos, TensorValue) or not isinstance(sin, TensorValue):
        return Filled(*caches)
    neighbours = program.values[given["neighbours"]]
    start = program.values[given["table_start"]]
    is_table = cos.constant is not None and sin.constant is not None
    if not is_table or isinstance(start, IntValue) or not isinstance(neighbours, BoolValue):
        return None
    return Filled(*caches, given["cos"], given["sin"], neighbours.value)


def _rows(program: Program, cache: int) -> int:
    value = program.values[cache]
    assert isinstance(value, TensorValue), "ops check what they are given before"
    return value.dims[-3]


async def slide(graph: Graph, caches: list[Filled], keep: int, drop: int, end: int) -> bool:
    """Move rows keep + drop … end up to row `keep`; nothing moves where turns do not add up."""
    turns: dict[int | None, np.ndarray | None] = {None: None}  # by table
    for filled in caches:
        if filled.cos not in turns:
            turns[filled.cos] = turn = await _turn_back(graph, filled, drop, end)
            if turn is None:
                return False
    for filled in caches:
        for begin, after in _stretches(graph, filled, keep, end - drop):
            await _move(graph, filled, begin, after, drop, turns[filled.cos])
        await graph.device.finish_writes()
    return True


def _stretches(graph: Graph, filled: Filled, begin: int, end: int) -> Iterator[tuple[int, int]]:
    tensor = graph.builder.tensors[filled.k_cache]
    step = max(1, AT_ONCE // tensor.dtype.bytes_of(numel(tensor.dims[-2:])))
    for at in range(begin, end, step):
        yield at, min(at + step, end)


async def _move(
    graph: Graph, filled: Filled, begin: int, end: int, drop: int, turn: np.ndarray | None
) -> None:
    """Fill rows begin … end of both caches with what lies `drop` rows behind them."""
    reads, places = [], []
    for cache in (filled.k_cache, filled.v_cache):
        tensor, place = graph.builder.tensors[cache], graph.placed.offsets.get(cache, 0)
        row = tensor.dtype.bytes_of(numel(tensor.dims[-2:]))
        buffer = graph.buffer(cache)
        reads.append(Read(buffer, (end - begin) * row, place + (begin + drop) * row))
        places.append(place + begin * row)
    k, v = await graph.device.submit_and_read(None, None, [], reads)
    if turn is not None:
        tensor = graph.builder.tensors[filled.k_cache]
        keys = held_values(tensor.dtype, k).reshape(end - begin, *tensor.dims[-2:])
        k = as_held(tensor.dtype, turned(keys, turn, filled.neighbours))
    moved = zip(reads, (k, v), places, strict=True)
    graph.device.submit(None, None, [Write(read.buffer, data, at) for read, data, at in moved])


def turned(keys: np.ndarray, turn: np.ndarray, neighbours: bool) -> np.ndarray:
    """Return keys [rows, heads, width] with their pairs turned: turn is complex64 [pairs]."""
    pairs, found = len(turn), keys.astype(np.float32)
    if neighbours:
        one, other = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    else:
        one, other = slice(0, pairs), slice(pairs, 2 * pairs)
    a, b = keys[..., one], keys[..., other]
    found[..., one] = a * turn.real - b * turn.imag
    found[..., other] = a * turn.imag + b * turn.real
    return found


async def _turn_back(graph: Graph, filled: Filled, drop: int, end: int) -> np.ndarray | None:
    """Return what turns a key back by `drop` positions: complex64 [pairs], of length 1.

    None where angles do not grow evenly with the position, as far as these rows say.
    """
    rows = [await _table_row(graph, filled, row) for row in (0, drop, end - 1 - drop, end - 1)]
    first, later, before, after = rows
    lengths = np.abs(first) ** 2  # of what scales both
    grown = later * first.conj() / lengths
    if np.abs(after * before.conj() / lengths - grown).max() > CLOSE:
        return None
    found: np.ndarray = grown.conj().astype(np.complex64)
    return found


async def _table_row(graph: Graph, filled: Filled, row: int) -> np.ndarray:
    """Return a row of the rotary tables: complex128 [pairs]."""
    parts = []
    for table in (filled.cos, filled.sin):
        assert table is not None, "whoever asks knows that keys turn"
        tensor, place = graph.builder.tensors[table], graph.placed.offsets.get(table, 0)
        nbytes = tensor.dtype.bytes_of(tensor.dims[-1])
        data = await graph.device.read_buffer(graph.buffer(table), nbytes, place + row * nbytes)
        parts.append(held_values(tensor.dtype, data).astype(np.float64))
    found: np.ndarray = parts[0] + 1j * parts[1]
    return found if filled.neighbours else found[: len(found) // 2]  # two equal halves
