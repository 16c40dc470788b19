"""Graphs with and without passes, side by side, on behalf of the tests beside this file."""

from typing import Any

import numpy as np

from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph import Graph
from py_runtime.passes import DEFAULT_PASSES
from py_runtime.program.json_format import load_program

TARGETS = {
    "alone": KernelTarget(),  # what every device can do
    "shared": KernelTarget(lanes=4, storage_buffers=10),
    "subgroups": KernelTarget(wide=True, lanes=4, storage_buffers=10),
    "memory": KernelTarget(wide=True, lanes=1, storage_buffers=10),
}


async def run_with_passes(
    device: Device,
    program: str,
    constants: dict[str, np.ndarray],
    calls: list[list[Any]],
    target: str,
    passes: list[int] | None = None,
) -> dict[str, Any]:
    """Each call's outputs and dispatches, on one graph; `passes` are places in DEFAULT_PASSES."""
    chosen = DEFAULT_PASSES if passes is None else [DEFAULT_PASSES[place] for place in passes]
    graph = await Graph.load(
        device, load_program(program), constants, target=TARGETS[target], passes=chosen
    )
    outputs, dispatches = [], []
    try:
        for inputs in calls:
            device.counters.reset()
            outputs.append(await graph.run(inputs))
            dispatches.append(device.counters.dispatches)
    finally:
        graph.unload()
    return {
        "outputs": outputs,
        "dispatches": dispatches,
        "ops": [call.name for call in graph.program.ops],
        "constant bytes": graph.memory.constants,
    }
