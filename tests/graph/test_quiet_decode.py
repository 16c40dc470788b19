"""Quiet decodes: what the answers alone do not show."""

from typing import Any

import numpy as np

from py_runtime.base.dtypes import F32
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter
from tests.runners import NativeRunner, wait


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

    first, second, last = wait(bytes_written())
    assert first > 4
    assert (second, last) == (4, 4)
