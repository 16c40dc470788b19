"""Refusals of attention and rotary ops, word for word; the graph is usable afterwards."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I64
from py_runtime.base.errors import GraphError, InputError
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter, Ref
from tests.runners import NativeRunner, wait

Make = Callable[[ProgramWriter], None]
SDPA = "op 0 (sdpa_with_kv_cache.default): "


def ones(*dims: int) -> np.ndarray:
    return np.ones(dims, np.float32)


def sdpa(
    writer: ProgramWriter,
    q: tuple[int, ...] = (1, 8, 4, 8),
    k: tuple[int, ...] = (1, 8, 2, 8),
    v: tuple[int, ...] | None = None,
    cache: tuple[int, ...] = (1, 16, 2, 8),
    start_pos: Ref | int | None = None,
    one_cache: bool = False,
    **options: Any,
) -> None:
    inputs = [
        writer.input(name, dims, F32, dynamic=(max(len(dims) - 3, 0),))
        for name, dims in (("q", q), ("k", k), ("v", v or k))
    ]
    k_cache, v_cache = (writer.state(name, cache, F32) for name in ("k_cache", "v_cache"))
    out = writer.tensor(q, F32)
    writer.op(
        "sdpa_with_kv_cache.default",
        *inputs,
        *(k_cache, k_cache if one_cache else v_cache),
        writer.symint_input("start_pos") if start_pos is None else start_pos,
        1,
        options.get("attn_mask"),
        options.get("dropout_p", 0),
        options.get("is_causal", True),
        options.get("scale"),
        out,
    )
    writer.output(out)


def refused_at_load(native: NativeRunner, make: Make) -> str:
    writer = ProgramWriter()
    make(writer)
    with pytest.raises(GraphError) as caught:
        wait(Graph.load(native.device, writer.program(), writer.constants))
    return str(caught.value)


def refused_in_call(
    native: NativeRunner, make: Make, good: list[Any], bad: list[Any], before: bool = True
) -> str:
    """Return the text of the refusal; a good call returns the same before and after it."""

    async def calls() -> str:
        writer = ProgramWriter()
        make(writer)
        graph = await Graph.load(native.device, writer.program(), writer.constants)
        try:
            first = await graph.run(good) if before else []
            with pytest.raises(InputError) as caught:
                await graph.run(bad)
            again = await graph.run(good)
            for was, now in zip(first, again, strict=before):
                np.testing.assert_array_equal(was, now)
            return str(caught.value)
        finally:
            graph.unload()

    return wait(calls())


def qkv(tokens: int) -> list[np.ndarray]:
    return [ones(1, tokens, 4, 8), ones(1, tokens, 2, 8), ones(1, tokens, 2, 8)]


def test_a_position_beyond_the_context(native: NativeRunner) -> None:
    text = refused_in_call(native, sdpa, [*qkv(8), 8], [*qkv(8), 9])
    assert text == SDPA + "start_pos 9 + 8 tokens is 17, but the cache has 16 rows"
    text = refused_in_call(native, sdpa, [*qkv(1), 15], [*qkv(1), 16])
    assert text == SDPA + "start_pos 16 + 1 tokens is 17, but the cache has 16 rows"


def test_a_position_beyond_the_context_in_the_first_call(native: NativeRunner) -> None:
    text = refused_in_call(native, sdpa, [*qkv(8), 0], [*qkv(8), 2_147_483_647], before=False)
    assert text == (
        SDPA + "start_pos 2147483647 + 8 tokens is 2147483655, but the cache has 16 rows"
    )


def test_a_ring_too_short_for_the_tokens_of_a_call(native: NativeRunner) -> None:
    def make(writer: ProgramWriter) -> None:
        inputs = [
            writer.input(name, (1, 8, heads, 8), F32, dynamic=(1,))
            for name, heads in (("q", 4), ("k", 2), ("v", 2))
        ]
        caches = [writer.state(name, (1, 10, 2, 8), F32) for name in ("k_cache", "v_cache")]
        out = writer.tensor((1, 8, 4, 8), F32)
        how = (writer.symint_input("start_pos"), None, 5, None, None, out)
        writer.op("inpage.windowed_attention.default", *inputs, *caches, *how)
        writer.output(out)

    text = refused_in_call(native, make, [*qkv(6), 5], [*qkv(7), 5])
    assert text == (
        "op 0 (inpage.windowed_attention.default): 7 tokens that see 5 positions each are at "
        "position 5, past the cache's 10 rows, which as a ring must be 11 or more"
    )


def test_a_negative_position(native: NativeRunner) -> None:
    text = refused_in_call(native, sdpa, [*qkv(3), 2], [*qkv(3), -1])
    assert text == SDPA + "start_pos is -1; positions begin at 0"


def test_a_position_from_an_input_beyond_the_context(native: NativeRunner) -> None:
    def make(writer: ProgramWriter) -> None:
        positions = writer.input("positions", (1,), I64)
        start_pos = writer.symint("start_pos")
        writer.op("et_vk.select_as_symint.default", positions, 0, 0, start_pos)
        sdpa(writer, start_pos=start_pos)

    text = refused_in_call(native, make, [np.array([8]), *qkv(8)], [np.array([9]), *qkv(8)])
    assert text == (
        "op 1 (sdpa_with_kv_cache.default): start_pos 9 + 8 tokens is 17, but the cache has 16 rows"
    )


def test_a_constant_position_leaves_no_room(native: NativeRunner) -> None:
    text = refused_at_load(native, lambda writer: sdpa(writer, start_pos=9))
    assert text == SDPA + "start_pos 9 + 8 tokens is 17, but the cache has 16 rows"


def test_a_fault_further_on_takes_back_what_was_set(native: NativeRunner) -> None:
    """The second cache is too short; the first attention had already seen the new shape."""

    def make(writer: ProgramWriter) -> None:
        x = writer.input("x", (1, 8, 2, 8), F32, dynamic=(1,))
        start_pos = writer.symint_input("start_pos")
        for rows in (16, 8):
            caches = [writer.state(f"{name} of {rows}", (1, rows, 2, 8), F32) for name in "kv"]
            out = writer.tensor((1, 8, 2, 8), F32)
            rest = (1, None, 0, True, None, out)
            writer.op("sdpa_with_kv_cache.default", x, x, x, *caches, start_pos, *rest)
            writer.output(out)

    async def answers(fault_first: bool) -> list[np.ndarray]:
        writer = ProgramWriter()
        make(writer)
        graph = await Graph.load(native.device, writer.program(), writer.constants)
        if fault_first:
            await graph.run([x, 0])
            with pytest.raises(InputError, match="6 \\+ 4 tokens is 10, but the cache has 8 rows"):
                await graph.run([x[:, :4], 6])
        results = await graph.run([x[:, 4:], 0])
        graph.unload()
        return results

    x = np.random.default_rng(8).standard_normal((1, 8, 2, 8), np.float32)
    after, fresh = wait(answers(True)), wait(answers(False))
    for given, wanted in zip(after, fresh, strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_tokens_of_q_k_and_v_differ(native: NativeRunner) -> None:
    q, k, v = qkv(5)
    text = refused_in_call(native, sdpa, [q, k, v, 0], [q, k, v[:, :4], 0])
    assert text == SDPA + "q [1, 5, 4, 8], k [1, 5, 2, 8] and v [1, 4, 2, 8] do not fit together"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"attn_mask": 1}, "attn_mask must be null; the mask is the causal one"),
        ({"dropout_p": 0.5}, "dropout_p must be 0"),
        ({"is_causal": False}, "is_causal must be true or null"),
        ({"one_cache": True}, "k_cache and v_cache are the same tensor"),
        ({"q": (8, 8)}, "q has rank 2; it must be 3 or 4"),
        (
            {"q": (1, 8, 3, 8)},
            "3 query heads cannot share 2 key and value heads evenly",
        ),
        (
            {"k": (1, 8, 2, 12)},
            "q [1, 8, 4, 8], k [1, 8, 2, 12] and v [1, 8, 2, 12] do not fit together",
        ),
        (
            {"v": (1, 8, 4, 8)},
            "q [1, 8, 4, 8], k [1, 8, 2, 8] and v [1, 8, 4, 8] do not fit together",
        ),
        (
            {"cache": (2, 16, 2, 8)},
            "caches [2, 16, 2, 8] and [2, 16, 2, 8] do not fit k [1, 8, 2, 8]",
        ),
    ],
)
def test_a_graph_that_cannot_be_attended(
    native: NativeRunner, options: dict[str, Any], text: str
) -> None:
    assert refused_at_load(native, lambda writer: sdpa(writer, **options)) == SDPA + text


def update_cache(writer: ProgramWriter) -> None:
    value = writer.input("value", (1, 8, 2, 8), F32, dynamic=(1,))
    cache = writer.state("cache", (1, 16, 2, 8), F32)
    out = writer.tensor((1, 16, 2, 8), F32)
    writer.op("update_cache.default", value, cache, writer.symint_input("start_pos"), out)
    writer.output(out)


def test_an_update_beyond_the_cache(native: NativeRunner) -> None:
    value = ones(1, 8, 2, 8)
    text = refused_in_call(native, update_cache, [value, 8], [value, 9])
    where = "op 0 (update_cache.default): "
    assert text == where + "start_pos 9 + 8 tokens is 17, but the cache has 16 rows"


@pytest.mark.parametrize("dims", [(1, 8, 3, 8), (1, 8, 2, 9), (2, 8, 2, 8)])
def test_an_update_of_another_shape(native: NativeRunner, dims: tuple[int, ...]) -> None:
    def make(writer: ProgramWriter) -> None:
        value, cache = writer.input("value", dims, F32), writer.state("c", (1, 9, 2, 8), F32)
        start_pos = writer.symint_input("start_pos")
        writer.op("update_cache.default", value, cache, start_pos, writer.tensor((1,), F32))

    assert refused_at_load(native, make) == (
        f"op 0 (update_cache.default): value {list(dims)} does not fit into the cache [1, 9, 2, 8]"
    )


def masked_sdpa(writer: ProgramWriter) -> None:
    q = writer.input("q", (1, 2, 4, 8), F32, dynamic=(2,))
    mask = writer.input("mask", (4, 4), F32, dynamic=(0, 1))
    out = writer.tensor((1, 2, 4, 8), F32)
    writer.op("et_vk.sdpa.default", q, q, q, mask, None, out)
    writer.output(out)


def test_a_mask_that_does_not_stretch(native: NativeRunner) -> None:
    good, bad = [ones(1, 2, 3, 8), ones(3, 3)], [ones(1, 2, 3, 8), ones(3, 4)]
    assert refused_in_call(native, masked_sdpa, good, bad) == (
        "op 0 (et_vk.sdpa.default): mask [3, 4] does not stretch to scores [1, 2, 3, 3]"
    )


def test_a_mask_with_more_dims_than_the_scores(native: NativeRunner) -> None:
    def make(writer: ProgramWriter) -> None:
        q = writer.input("q", (1, 2, 4, 8), F32)
        mask = writer.input("mask", (1, 1, 1, 4, 4), F32)
        writer.op("et_vk.sdpa.default", q, q, q, mask, None, writer.tensor((1, 2, 4, 8), F32))

    assert refused_at_load(native, make) == (
        "op 0 (et_vk.sdpa.default): mask [1, 1, 1, 4, 4] does not stretch to scores [1, 2, 4, 4]"
    )


def rotary(name: str, table: tuple[int, int], *start_pos: str) -> Make:
    def make(writer: ProgramWriter) -> None:
        q = writer.input("q", (1, 8, 4, 8), F32, dynamic=(1,))
        k = writer.input("k", (1, 8, 2, 8), F32, dynamic=(1,))
        cos, sin = (writer.constant(key, ones(*table)) for key in ("cos", "sin"))
        outs = [writer.tensor((1, 8, 4, 8), F32), writer.tensor((1, 8, 2, 8), F32)]
        start = [writer.symint_input(name) for name in start_pos]
        writer.op(name, q, k, cos, sin, *start, outs)
        writer.output(*outs)

    return make


def test_tokens_of_a_rotary_differ(native: NativeRunner) -> None:
    make = rotary("et_vk.apply_rotary_emb.default", (8, 4))
    q, k = ones(1, 8, 4, 8), ones(1, 8, 2, 8)
    for bad, tokens in (([q[:, :5], k], (5, 8)), ([q, k[:, :5]], (8, 5))):
        assert refused_in_call(native, make, [q[:, :5], k[:, :5]], bad) == (
            f"op 0 (et_vk.apply_rotary_emb.default): xq [1, {tokens[0]}, 4, 8] and xk "
            f"[1, {tokens[1]}, 2, 8] may differ in their heads only"
        )


def test_rotary_tables_are_too_short(native: NativeRunner) -> None:
    where = "op 0 (et_vk.apply_rotary_emb.default): "
    text = refused_at_load(native, rotary("et_vk.apply_rotary_emb.default", (6, 4)))
    assert text == where + "xq has 8 tokens, but the tables have 6 rows"

    def make(writer: ProgramWriter) -> None:
        x, table = (
            writer.input(name, dims, F32, dynamic=(0,))
            for name, dims in (("x", (8, 1, 8)), ("t", (8, 4)))
        )
        outs = [writer.tensor((8, 1, 8), F32), writer.tensor((8, 1, 8), F32)]
        writer.op("et_vk.apply_rotary_emb.default", x, x, table, table, outs)
        writer.output(*outs)

    text = refused_in_call(native, make, [ones(5, 1, 8), ones(5, 4)], [ones(6, 1, 8), ones(5, 4)])
    assert text == where + "xq has 6 tokens, but the tables have 5 rows"


def test_a_rotary_position_beyond_the_table(native: NativeRunner) -> None:
    make = rotary("et_vk.apply_rotary_emb_hf.default", (16, 8), "start_pos")
    q, k = ones(1, 8, 4, 8), ones(1, 8, 2, 8)
    where = "op 0 (et_vk.apply_rotary_emb_hf.default): "
    text = refused_in_call(native, make, [q, k, 8], [q, k, 9])
    assert text == where + "start_pos 9 + 8 tokens is 17, but the rotary table has 16 rows"
    text = refused_in_call(native, make, [q, k, 8], [q, k, -3])
    assert text == where + "start_pos is -3; positions begin at 0"


def test_rotary_tables_of_the_wrong_width(native: NativeRunner) -> None:
    text = refused_at_load(native, rotary("et_vk.apply_rotary_emb.default", (8, 8)))
    assert text == (
        "op 0 (et_vk.apply_rotary_emb.default): tables have 8 columns; heads of 8 need 4"
    )
    make = rotary("et_vk.apply_rotary_emb_hf.default", (8, 10), "start_pos")
    assert refused_at_load(native, make) == (
        "op 0 (et_vk.apply_rotary_emb_hf.default): tables have 10 columns; heads of 8 take an even "
        "number up to 8"
    )
