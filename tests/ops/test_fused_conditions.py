"""Conditions of the ops that passes make, each violated alone in an otherwise sound program.

No GPU is needed to refuse them.
"""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F16, F32
from py_runtime.base.errors import GraphError
from py_runtime.graph.buffers import GUARANTEED_LIMITS, measure
from py_runtime.ops.kernels.cut_rows import LONGEST_UNCUT, part_count, rows_along
from py_runtime.program.writer import ProgramWriter, Ref

TOKENS, WIDTH, HEADS, KV_HEADS, HEAD_DIM, CONTEXT = 3, 8, 4, 2, 4, 16
Q = (TOKENS, HEADS, HEAD_DIM)
CACHE = (CONTEXT, KV_HEADS, HEAD_DIM)


class Fused(ProgramWriter):
    """Writes one op from arguments of which some are changed."""

    def zeros(self, name: str, *dims: int) -> Ref:
        return self.constant(name, np.zeros(dims, np.float32))

    def optional(self, name: str, dims: tuple[int, ...] | None) -> Ref | None:
        return None if dims is None else self.zeros(name, *dims)

    def qkv(self, **changed: Any) -> None:
        k_dims = changed.get("k_cache", CACHE)
        v_dims = changed.get("v_cache", k_dims)
        dtypes = changed.get("caches", (F32, F32))
        k_cache = self.state("k", k_dims, dtypes[0])
        v_cache = k_cache if changed.get("one_cache") else self.state("v", v_dims, dtypes[1])
        rows = changed.get("rows", (HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM))
        start = self.symint_input("start")
        caches = (k_cache, v_cache, start, changed.get("window"), changed.get("v_eps"))
        norms = [
            part
            for name in ("q_norm", "k_norm")
            for part in (self.optional(name, changed.get(name)), 1e-6)
        ]
        args = (*self.first(rows, changed), *norms, *self.tables(changed, start), *caches)
        self.finish("inpage.qkv_rotary_cache.default", changed, *args)

    def q_rotary(self, **changed: Any) -> None:
        rows = changed.get("rows", (HEADS * HEAD_DIM,))
        start = self.symint_input("start")
        norm = (self.optional("q_norm", changed.get("q_norm")), 1e-6)
        args = (*self.first(rows, changed), *norm, *self.tables(changed, start))
        self.finish("inpage.q_rotary.default", changed, *args)

    def first(self, rows: tuple[int, ...], changed: dict[str, Any]) -> tuple[Any, ...]:
        x = self.input("x", changed.get("x", (TOKENS, WIDTH)), F32)
        norm = self.optional("norm", changed.get("norm"))
        weights = [self.zeros(f"w{at}", count, WIDTH) for at, count in enumerate(rows)]
        lengths = changed.get("biases")
        biases = lengths and [self.zeros(f"b{at}", size) for at, size in enumerate(lengths)]
        return (x, norm, 1e-5, "f32", weights, None, 32, biases)

    def tables(self, changed: dict[str, Any], start: Ref) -> tuple[Any, ...]:
        cos = changed.get("cos", (CONTEXT, HEAD_DIM))
        sin = changed.get("sin", cos)
        neighbours = changed.get("neighbours", False)
        return (self.optional("cos", cos), self.optional("sin", sin), start, neighbours)

    def attend(self, **changed: Any) -> None:
        q = self.input("q", changed.get("q", Q), F32)
        k_dims = changed.get("k_cache", CACHE)
        k_cache = self.state("k", k_dims, F32)
        v_cache = self.state("v", changed.get("v_cache", k_dims), F32)
        start = self.symint_input("start")
        sinks = self.optional("sinks", changed.get("sinks"))
        seen = (changed.get("window"), changed.get("softcap"), sinks)
        args = (q, k_cache, v_cache, start, None, *seen)
        changed.setdefault("out", changed.get("q", Q))
        self.finish("inpage.attend_window.default", changed, *args)

    def finish(self, op: str, changed: dict[str, Any], *args: Any) -> None:
        out = self.tensor(changed.get("out", Q), F32)
        self.op(op, *args, out)
        self.output(out)
        measure(self.program())


def batched(*batches: int) -> dict[str, Any]:
    """x, q and caches with leading dims."""
    return {
        "x": (*batches, TOKENS, WIDTH),
        "out": (*batches, *Q),
        "k_cache": (*batches, *CACHE),
        "q": (*batches, *Q),
    }


ROW_NORMS = {"q_norm": (HEADS * HEAD_DIM,), "k_norm": (KV_HEADS * HEAD_DIM,)}
HEAD_NORMS = {"q_norm": (HEAD_DIM,), "k_norm": (HEAD_DIM,)}
SOUND: list[tuple[str, dict[str, Any]]] = [
    *(("qkv", {}), ("qkv", batched(1)), ("qkv", {"window": 1}), ("qkv", {"v_eps": 1e-6})),
    *(("qkv", HEAD_NORMS), ("qkv", ROW_NORMS), ("qkv", HEAD_NORMS | {"v_eps": 1e-6})),
    *(("qkv", {"cos": None}), ("qkv", {"cos": (CONTEXT, 2)}), ("qkv", {"caches": (F16, F16)})),
    *(("qkv", {"cos": (CONTEXT, 2), "neighbours": True}), ("qkv", {"norm": (WIDTH,)})),
    *(("qkv", {"biases": (16, 8, 8)}), ("qkv", {"biases": (16, 8, 12)})),
    *(("q_rotary", {}), ("q_rotary", {"x": (1, TOKENS, WIDTH), "out": (1, *Q)})),
    *(("q_rotary", {"q_norm": (HEAD_DIM,)}), ("q_rotary", {"q_norm": (HEADS * HEAD_DIM,)})),
    *(("attend", {}), ("attend", batched(1)), ("attend", batched(2)), ("attend", {"window": 1})),
    *(("attend", {"softcap": 0.5}), ("attend", {"sinks": (HEADS,)})),
    ("attend", {"k_cache": (CONTEXT, 1, HEAD_DIM)}),
]
BATCH, FIT = "must be of one batch", "do not fit"
TOO_DEEP = (1, 1, TOKENS, WIDTH)
UNSOUND: list[tuple[str, dict[str, Any], str]] = [
    ("qkv", {"x": (WIDTH,)}, ""),
    ("qkv", batched(1, 1), BATCH),
    ("qkv", batched(2), BATCH),
    ("qkv", {"x": (1, TOKENS, WIDTH)}, BATCH),
    ("qkv", {"out": (1, *Q)}, BATCH),
    ("qkv", {"k_cache": (1, *CACHE)}, BATCH),
    ("qkv", batched(1) | {"x": (2, TOKENS, WIDTH)}, BATCH),
    ("qkv", batched(1) | {"out": (2, *Q)}, BATCH),
    ("qkv", batched(1) | {"k_cache": (2, *CACHE)}, BATCH),
    ("qkv", {"rows": (20, 8, 8)}, FIT),
    ("qkv", {"rows": (16, 12, 8)}, FIT),
    ("qkv", {"rows": (16, 8, 12)}, FIT),
    ("qkv", {"rows": (16, 8)}, FIT),
    ("qkv", {"k_cache": (CONTEXT, KV_HEADS, 8)}, FIT),
    ("qkv", {"v_cache": (CONTEXT + 1, KV_HEADS, HEAD_DIM)}, FIT),
    ("qkv", {"one_cache": True}, FIT),
    ("qkv", {"rows": (16, 12, 12), "k_cache": (CONTEXT, 3, HEAD_DIM)}, FIT),
    ("qkv", {"caches": (F32, F16)}, "both must be the same"),
    ("qkv", {"window": 0}, "a window of 0 positions"),
    ("qkv", {"norm": (WIDTH + 1,)}, "does not fit 8 columns"),
    ("qkv", {"biases": (16, 8, 7)}, FIT),
    ("qkv", {"biases": (16, 9, 8)}, FIT),
    ("qkv", {"biases": (16, 8)}, FIT),
    ("qkv", HEAD_NORMS | {"q_norm": (HEAD_DIM + 1,)}, "fit neither heads"),
    ("qkv", HEAD_NORMS | {"k_norm": (HEAD_DIM + 1,)}, "fit neither heads"),
    ("qkv", HEAD_NORMS | {"k_norm": (KV_HEADS * HEAD_DIM,)}, "fit neither heads"),
    ("qkv", ROW_NORMS | {"v_eps": 1e-6}, "fit neither heads"),
    ("qkv", {"cos": (CONTEXT, 6)}, FIT),
    ("qkv", {"cos": (CONTEXT, 3)}, FIT),
    ("qkv", {"cos": (CONTEXT, 4), "neighbours": True}, FIT),
    ("qkv", {"cos": (CONTEXT, 1), "neighbours": True}, FIT),
    ("qkv", {"sin": (CONTEXT, 2)}, FIT),
    ("qkv", {"sin": (CONTEXT + 1, HEAD_DIM)}, FIT),
    ("q_rotary", {"x": TOO_DEEP, "out": (1, 1, *Q)}, BATCH),
    ("q_rotary", {"out": (1, *Q)}, BATCH),
    ("q_rotary", {"x": (2, TOKENS, WIDTH), "out": (1, *Q)}, BATCH),
    ("q_rotary", {"x": (1, TOKENS, WIDTH), "out": (2, *Q)}, BATCH),
    ("q_rotary", {"rows": (20,)}, FIT),
    ("q_rotary", {"rows": (16, 16)}, FIT),
    ("q_rotary", {"q_norm": (8,)}, "fit neither heads"),
    ("attend", batched(1, 1), "q has rank 5; it must be 3 or 4"),
    ("attend", {"q": (TOKENS, HEADS * HEAD_DIM)}, "q has rank 2; it must be 3 or 4"),
    ("attend", {"v_cache": (CONTEXT, 1, HEAD_DIM)}, FIT),
    ("attend", batched(1) | {"k_cache": (2, *CACHE)}, FIT),
    ("attend", {"k_cache": (CONTEXT, KV_HEADS, HEAD_DIM + 4)}, FIT),
    ("attend", {"k_cache": (CONTEXT, 3, HEAD_DIM)}, FIT),
    ("attend", {"window": 0}, "a window of 0 positions"),
    ("attend", {"softcap": 0.0}, "a softcap of 0.0"),
    ("attend", {"sinks": (HEADS + 1,)}, "sinks for 4 heads"),
]


@pytest.mark.parametrize(("op", "changed"), SOUND, ids=str)
def test_what_is_sound_is_built(op: str, changed: dict[str, Any]) -> None:
    getattr(Fused(), op)(**changed)


@pytest.mark.parametrize(("op", "changed", "fault"), UNSOUND, ids=str)
def test_what_is_not_is_told(op: str, changed: dict[str, Any], fault: str) -> None:
    with pytest.raises(GraphError, match=fault):
        getattr(Fused(), op)(**changed)


def test_limits_that_are_guaranteed_are_those_of_webgpu() -> None:
    """The defaults of its compatibility mode, the lowest that any adapter may have."""
    assert GUARANTEED_LIMITS == {
        "min_uniform_buffer_offset_alignment": 256,
        "max_compute_workgroups_per_dimension": 65535,
        "max_compute_invocations_per_workgroup": 128,
        "max_compute_workgroup_storage_size": 16384,
    }


@pytest.mark.parametrize(
    ("first", "last", "outer", "width", "inner"),
    [(0, 0, 1, 2, 105), (1, 1, 2, 3, 35), (3, 3, 30, 7, 1), (1, 2, 2, 15, 7), (0, 3, 1, 210, 1)],
)
def test_rows_along_dims(first: int, last: int, outer: int, width: int, inner: int) -> None:
    rows = rows_along((2, 3, 5, 7), first, last)
    assert (rows.outer, rows.width, rows.inner, rows.count) == (outer, width, inner, outer * inner)
    assert rows_along((), 0, -1).width == 1


def test_long_rows_are_cut_into_as_many_parts_as_a_part_is_long() -> None:
    assert part_count(LONGEST_UNCUT) == 1
    assert part_count(LONGEST_UNCUT + 1) == 16
    assert part_count(10_000) == 100
