"""Folded grids and quiet decodes: what the answers alone do not show."""

import asyncio
from typing import Any

import numpy as np
import pytest

from py_runtime.dtypes import F32
from py_runtime.graph import Graph
from py_runtime.program_writer import ProgramWriter
from tests.golden import Case, check
from tests.runners import NativeRunner
from tests.runtime import cases_attention, cases_rotary

GROUP_LIMIT = "max_compute_workgroups_per_dimension"
FEW_GROUPS = 20
SMALL_CASES = [
    case
    for module in (cases_attention, cases_rotary)
    for case in module.cases()
    if "many splits" not in case.name and "past 65,535" not in case.name
]


@pytest.mark.parametrize("case", SMALL_CASES, ids=lambda case: case.name)
def test_grids_fold(case: Case, native: NativeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a dimension takes few workgroups, small grids fold as large ones do elsewhere."""
    monkeypatch.setitem(native.device.limits, GROUP_LIMIT, FEW_GROUPS)
    check(case, native)


def test_a_new_position_uploads_nothing_but_itself(native: NativeRunner) -> None:
    async def bytes_written() -> list[int]:
        writer = ProgramWriter()
        q, k, v = (writer.input(name, (1, 4, 2, 8), F32, dynamic=(1,)) for name in "qkv")
        caches = [writer.state(name, (1, 64, 2, 8), F32) for name in ("k_cache", "v_cache")]
        out = writer.tensor((1, 4, 2, 8), F32)
        rest: tuple[Any, ...] = (1, None, 0, True, None, out)
        start_pos = writer.symint_input("start_pos")
        writer.op("sdpa_with_kv_cache.default", q, k, v, *caches, start_pos, *rest)
        writer.output(out)
        graph = await Graph.load(native.device, writer.program(), writer.constants)
        row = np.ones((1, 1, 2, 8), np.float32)
        counted = []
        for position in (0, 1, 63):
            native.device.counters.bytes_written = 0
            await graph.run([row, row, row, position])
            counted.append(native.device.counters.bytes_written - 3 * row.nbytes)
        graph.unload()
        return counted

    first, second, last = asyncio.run(bytes_written())
    assert first > 4
    assert (second, last) == (4, 4)
