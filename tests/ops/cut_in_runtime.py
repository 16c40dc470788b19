"""A graph on a device that is said to bind little, on behalf of test_cut_weights.py."""

from dataclasses import replace
from typing import Any

import numpy as np

from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import candidates
from py_runtime.graph import Graph
from py_runtime.program.json_format import load_program


async def run_cut(
    device: Device,
    program: str,
    constants: dict[str, np.ndarray],
    calls: list[list[Any]],
    kernels: str,
    binding_bytes: int,
) -> dict[str, Any]:
    """Return each call's outputs, and the bytes of the largest buffer that holds a constant."""
    target = replace(candidates(device)[kernels], binding_bytes=binding_bytes)
    graph = await Graph.load(device, load_program(program), constants, target=target)
    try:
        places = graph.constant_places()
        held = [place.buffer.size for name in ("weight", "scales") for place in places[name]]
        outputs = [await graph.run(inputs) for inputs in calls]
    finally:
        graph.unload()
    return {"outputs": outputs, "largest": max(held)}
