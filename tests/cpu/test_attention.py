"""Attention on the CPU beyond the cases of tests/ops: very wide heads, NaN."""

import numpy as np
import pytest

from py_runtime.program.json_format import dump_program
from tests.golden import check
from tests.ops.cases_attention import CachedAttention, prefills_and_decodes
from tests.runners import CpuRunner

HEADS, KV_HEADS, WIDTH, CONTEXT = 6, 2, 16, 300

pytestmark = pytest.mark.torch


def test_blocks_of_positions_shrink_where_heads_are_wide(cpu: CpuRunner) -> None:
    graph = CachedAttention("heads of 9,002", 2, 1, 9002, tokens=30, context=70)
    check(prefills_and_decodes(graph, [(30, 0), (1, 30), (30, 31), (1, 69)]), cpu)


@pytest.mark.parametrize("tokens", [1, CONTEXT])
def test_a_query_that_is_nan_spoils_its_own_row_alone(cpu: CpuRunner, tokens: int) -> None:
    graph = CachedAttention("NaN", HEADS, KV_HEADS, WIDTH, tokens=CONTEXT, context=CONTEXT)
    rng = np.random.default_rng(1)
    q = rng.standard_normal((1, CONTEXT, HEADS, WIDTH), np.float32)
    k, v = rng.standard_normal((2, 1, CONTEXT, KV_HEADS, WIDTH), np.float32)
    spoilt = q[:, -tokens:].copy()
    spoilt[0, -1, 4, 3] = spoilt[0, 0, 1, 0] = np.nan
    fills_the_caches = [q, k, v, 0]
    new = [k[:, -tokens:], v[:, -tokens:], CONTEXT - tokens]
    _, (wanted,), (got,) = cpu.run(
        "tests.in_runtime",
        "run_graph",
        program=dump_program(graph.writer.program()),
        constants=graph.writer.constants,
        calls=[fills_the_caches, [q[:, -tokens:], *new], [spoilt, *new]],
    )
    is_spoilt = np.isnan(spoilt).any(-1)
    assert np.isnan(got[is_spoilt]).all()
    np.testing.assert_array_equal(got[~is_spoilt], wanted[~is_spoilt])
