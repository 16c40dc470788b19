"""Caches that become rings, how long they are, and what that saves."""

import pytest

from bench.synthetic import SHAPES, SyntheticSource
from export.sources import Quantisation
from py_runtime.base.dtypes import F32
from py_runtime.decoder.program import write_decoder
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.graph.buffers import measure
from py_runtime.graph.rings import Ring, rings_of
from py_runtime.passes import ring_caches
from py_runtime.program.writer import ProgramWriter

pytestmark = pytest.mark.torch

TOKENS, CONTEXT = 8, 64
CONTEXT_OF_GEMMA = 8192


def attention(
    window: int | None,
    given: bool = False,
    read_again: int | None = None,  # by a call of this window
    kept: bool = False,
) -> ProgramWriter:
    writer = ProgramWriter()
    dims = (1, TOKENS, 2, 8)
    q, k, v = (writer.input(name, dims, F32, dynamic=(1,)) for name in "qkv")
    start = writer.symint_input("start_pos")
    cache_dims = (1, CONTEXT, 2, 8)
    make = writer.input if given else writer.state
    caches = [make(name, cache_dims, F32) for name in ("k_cache", "v_cache")]
    outs = [writer.tensor(dims, F32) for _ in range(1 + bool(read_again))]
    how = (None, window, None, None)
    writer.op("inpage.windowed_attention.default", q, k, v, *caches, start, *how, outs[0])
    if read_again:
        how = (None, read_again, None, None)
        writer.op("inpage.attend_window.default", q, *caches, start, *how, outs[1])
    writer.output(*outs, *caches[:kept])
    return writer


def rings(writer: ProgramWriter) -> list[Ring]:
    return rings_of(ring_caches.run(writer.program(), PORTABLE))


def test_a_ring_holds_what_the_tokens_of_a_call_see() -> None:
    assert rings(attention(24)) == [Ring(24 + TOKENS - 1, 24)]
    assert rings(attention(1)) == [Ring(TOKENS, 1)]
    assert rings(attention(56)) == [Ring(63, 56)]


def test_a_window_as_long_as_the_context_saves_nothing() -> None:
    for window in (57, 64, 1000):
        assert rings(attention(window)) == [Ring(CONTEXT, window)]
    assert rings(attention(None)) == []


def test_caches_that_others_know_keep_all_rows() -> None:
    for others in ({"given": True}, {"kept": True}):
        assert rings(attention(24, **others)) == [Ring(CONTEXT, 24)]
    assert rings(attention(24, read_again=25)) == [Ring(CONTEXT, 24), Ring(CONTEXT, 25)]


def test_layers_that_see_the_same_window_share_a_ring() -> None:
    assert rings(attention(24, read_again=24)) == [Ring(24 + TOKENS - 1, 24)]


def test_what_can_be_gone_on_from() -> None:
    ring = Ring(rows=31, window=24)
    assert all(ring.can_go_on(position, written=31) for position in range(32))
    assert [p for p in range(101) if ring.can_go_on(p, written=100)] == [0, *range(92, 101)]


def test_gemma_3_at_a_context_of_8192_takes_less_than_a_third() -> None:
    values = SHAPES["gemma-3-1b"]
    source = SyntheticSource("gemma", "none", values, {}, Quantisation("none"))
    config = source.decoder_config(CONTEXT_OF_GEMMA)
    program = write_decoder(config, source.kinds(config), "gemma")
    token = 2 * values["num_key_value_heads"] * values["head_dim"] * F32.gpu_bytes
    all_positions = values["num_hidden_layers"] * CONTEXT_OF_GEMMA * token
    assert 0.2 * all_positions < measure(program).report.state < all_positions / 3
