"""Weights that are larger than a kernel can bind."""

from dataclasses import replace

import numpy as np

from py_runtime.base.dtypes import F32
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.graph import Graph
from py_runtime.program.writer import ProgramWriter
from tests.graph.engine_graphs import WIDTH, rows, run
from tests.runners import NativeRunner, wait


def test_a_weight_that_no_binding_has_room_for_is_cut_by_rows(native: NativeRunner) -> None:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((200, WIDTH), np.float32)  # 64 rows each, and some more
    writer = ProgramWriter()
    x = writer.input("x", (1, 16, WIDTH), F32, dynamic=(1,))
    out = writer.tensor((1, 16, 200), F32)
    writer.op("aten.linear.default", x, writer.constant("weight", weight), None, out)
    writer.output(out)
    target = replace(PORTABLE, binding_bytes=weight.nbytes // 3)
    graph = wait(Graph.load(native.device, writer.program(), writer.constants, target=target))
    try:
        for count in (16, 1, 5):
            found = run(graph, rows(count))[0]
            np.testing.assert_allclose(found, rows(count) @ weight.T, rtol=1e-4, atol=1e-5)
    finally:
        graph.unload()
