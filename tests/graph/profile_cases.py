"""Profiles of small graphs, natively or in the page, on behalf of test_profile.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from py_runtime.base.errors import InpageError
from py_runtime.gpu import Buffer, Device, Plan, interface
from py_runtime.graph import Graph
from py_runtime.program.json_format import load_program


async def profile(
    device: Device,
    program: str,
    constants: dict[str, np.ndarray],
    inputs: list[Any],
    outputs: list[int] | None = None,
) -> dict[str, Any]:
    """Return the profile in plain values, and the outputs of a run before and after it."""
    graph = await Graph.load(device, load_program(program), constants, passes=())
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
        graph.unload()


async def profile_in_parts(device: Device, max_timed: int, **arguments: Any) -> dict[str, Any]:
    """Profile by a known clock: the step at place n of a plan takes n + 1 ticks."""
    usual, interface.MAX_TIMED = interface.MAX_TIMED, max_timed
    try:
        with known_clock(device):
            return await profile(device, **arguments)
    finally:
        interface.MAX_TIMED = usual


@contextmanager
def known_clock(device: Device) -> Iterator[None]:
    submit_timed, read_buffer = device._submit_timed, device.read_buffer
    places: dict[Buffer, np.ndarray] = {}  # of the steps whose ticks a buffer has

    async def submit(plan: Plan, counts: np.ndarray, timed: int, ticks: Buffer) -> None:
        await submit_timed(plan, counts, timed, ticks)
        places[ticks] = np.flatnonzero(plan.is_dispatch & (counts[:, 0] > 0))
        assert len(places[ticks]) == timed

    async def read(buffer: Buffer, nbytes: int, offset: int = 0) -> np.ndarray:
        data = await read_buffer(buffer, nbytes, offset)
        if buffer in places:
            began = places[buffer].astype(np.int64)
            data[:] = np.stack([began, 2 * began + 1], axis=1).view(np.uint8).ravel()
        return data

    vars(device).update(_submit_timed=submit, read_buffer=read)
    try:
        yield
    finally:
        del vars(device)["_submit_timed"], vars(device)["read_buffer"]


async def profile_without_timestamps(
    device: Device, program: str, constants: dict[str, np.ndarray], inputs: list[Any]
) -> list[Any]:
    """Return the error, and what the graph computes after it."""
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
