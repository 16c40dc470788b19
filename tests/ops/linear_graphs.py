"""Graphs of linears looked at from inside; test_linear_graphs.py runs them through runners."""

from typing import Any

import numpy as np

from py_runtime.base.dtypes import F32, I64
from py_runtime.base.errors import GraphError, InputError
from py_runtime.gpu import Device
from py_runtime.graph import Graph
from py_runtime.program.json_format import load_program
from py_runtime.program.writer import ProgramWriter


async def tied_head(
    device: Device, kind: str, weight: np.ndarray, scales: np.ndarray, columns: int
) -> dict[str, Any]:
    """Two values name each constant, as exporters write it."""
    rows = len(weight)
    writer = ProgramWriter()
    ids = writer.input("ids", (1,), I64)
    table, table_scales = writer.constant("weight", weight), writer.constant("scales", scales)
    head, head_scales = writer.constant("weight", weight), writer.constant("scales", scales)
    row, logits = writer.tensor((1, columns), F32), writer.tensor((1, rows), F32)
    writer.op(f"inpage.embedding_{kind}.default", table, table_scales, ids, row)
    writer.op(f"inpage.linear_{kind}.default", row, head, head_scales, None, logits)
    writer.output(row, logits)
    graph = await Graph.load(device, writer.program(), writer.constants)
    try:
        values, scores = await graph.run([np.array([3], np.int64)])
        return {
            "one weight buffer": graph.buffer(table.id) is graph.buffer(head.id),
            "one scale buffer": graph.buffer(table_scales.id) is graph.buffer(head_scales.id),
            "constant bytes": graph.memory.constants,
            "row": values,
            "logits": scores,
        }
    finally:
        graph.unload()


async def dispatches(
    device: Device, weight: np.ndarray, scales: np.ndarray, columns: int, counts: list[int]
) -> list[int]:
    """Return how many kernels run for each number of rows."""
    rows = len(weight)
    writer = ProgramWriter()
    x = writer.input("x", (max(counts), columns), F32, dynamic=(0,))
    out = writer.tensor((max(counts), rows), F32)
    constants = [writer.constant("weight", weight), writer.constant("scales", scales)]
    writer.op("inpage.linear_q4_0.default", x, *constants, None, out)
    writer.output(out)
    graph = await Graph.load(device, writer.program(), writer.constants)
    try:
        ran = []
        for count in counts:
            device.counters.reset()
            await graph.run([np.ones((count, columns), np.float32)])
            ran.append(device.counters.dispatches)
        return ran
    finally:
        graph.unload()


async def refusal(device: Device, program: str, constants: dict[str, np.ndarray]) -> str:
    """Return why the program cannot be loaded."""
    try:
        graph = await Graph.load(device, load_program(program), constants)
    except GraphError as error:
        return str(error)
    graph.unload()
    return "it was loaded"


async def answers(device: Device, program: str, calls: list[list[np.ndarray]]) -> list[Any]:
    """Return the first output of each call, or why it was refused, on one graph."""
    graph = await Graph.load(device, load_program(program))
    results: list[Any] = []
    for inputs in calls:
        try:
            results.append((await graph.run(inputs))[0])
        except InputError as error:
            results.append(str(error))
    graph.unload()
    return results
