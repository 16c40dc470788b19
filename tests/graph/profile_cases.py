"""Profiles of small graphs, natively or in the page, on behalf of test_profile.py."""

from typing import Any

import numpy as np

from py_runtime.base.errors import InpageError
from py_runtime.gpu import Device, interface
from py_runtime.graph import Graph
from py_runtime.program.json_format import load_program


async def profile(
    device: Device,
    program: str,
    constants: dict[str, np.ndarray],
    inputs: list[Any],
    outputs: list[int] | None = None,
    max_timed: int = interface.MAX_TIMED,
) -> dict[str, Any]:
    """The profile in plain values, and the outputs of a run before and after it."""
    graph = await Graph.load(device, load_program(program), constants, passes=())
    usual, interface.MAX_TIMED = interface.MAX_TIMED, max_timed
    try:
        before = await graph.run(inputs)
        buffers = device.counters.buffers_alive
        device.counters.reset()
        found = await graph.profile(inputs, outputs, repeats=2)
        counted = device.counters.dispatches
        left = device.counters.buffers_alive - buffers
        return {
            "microseconds": found.microseconds,
            **{
                name: [[t.label, t.kind, t.count, t.microseconds, t.share] for t in timings]
                for name, timings in (
                    ("kinds", found.kinds),
                    ("kernels", found.kernels),
                    ("dispatches", found.dispatches),
                )
            },
            "counted": counted,
            "buffers left": left,
            "before": before,
            "after": await graph.run(inputs),
        }
    finally:
        interface.MAX_TIMED = usual
        graph.unload()


async def profile_without_timestamps(
    device: Device, program: str, constants: dict[str, np.ndarray], inputs: list[Any]
) -> list[Any]:
    """The error, and what the graph computes after it."""
    graph = await Graph.load(device, load_program(program), constants)
    features, device.features = device.features, frozenset()
    try:
        await graph.profile(inputs)
    except InpageError as error:
        return [error.code, str(error), await graph.run(inputs)]
    finally:
        device.features = features
        graph.unload()
    raise AssertionError("nothing was raised")
