"""The choice of kernels on adapters of straw, natively or in the page, for test_tuning.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from py_runtime.base.dtypes import F32
from py_runtime.base.platform import IN_PAGE
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import FLOAT_KERNELS, MEMORY_KERNELS, candidates
from py_runtime.graph import Graph, tuning
from py_runtime.graph.layer_timing import LayerShape, time_layers
from py_runtime.program.writer import ProgramWriter

if IN_PAGE:
    from py_runtime.folder import browser_notes as kept_notes
else:
    from py_runtime.folder import process_notes as kept_notes

PATIENCE = 600.0  # a busy machine may take its time to compile
# The kernels are the same for a small product, and a software GPU is slow at the usual one.
SMALL_PRODUCT = {"ROWS": 64, "COLUMNS": 64, "ROUNDS": 2, "LIMIT_SECONDS": PATIENCE}


@contextmanager
def posing(device: Device, name: str, lanes: int, is_fallback: bool) -> Iterator[None]:
    """Give the device another name, as if it were a graphics processor, say."""
    real = device.adapter
    device.adapter = replace(
        real, description=name, subgroup_min_size=lanes, is_fallback=is_fallback
    )
    usual = {name: getattr(tuning, name) for name in SMALL_PRODUCT}
    vars(tuning).update(SMALL_PRODUCT)
    try:
        yield
    finally:
        device.adapter = real
        vars(tuning).update(usual)


def norm() -> ProgramWriter:
    writer = ProgramWriter()
    x = writer.input("x", (1, 8), F32)
    out = writer.tensor((1, 8), F32)
    writer.op("et_vk.rms_norm.default", x, writer.constant("w", np.ones(8, np.float32)), 1e-5, out)
    writer.output(out)
    return writer


async def choices(device: Device, name: str, lanes: int, is_fallback: bool) -> list[Any]:
    """Return who chose at three loads, and the buffers left.

    The loads are of a new adapter, again, and in a new process (which has what a browser keeps and
    no more).
    """
    writer, seen = norm(), []
    before = device.counters.buffers_alive
    with posing(device, name, lanes, is_fallback):
        for round_ in ("new", "again", "new process"):
            if round_ == "new process":
                kept_notes._in_memory.clear()
            choice = await tuning.choose_kernels(device, kept_notes)
            graph = await Graph.load(
                device, writer.program(), writer.constants, target=choice.target
            )
            x = np.ones((1, 8), np.float32)
            (out,) = await graph.run([x])
            assert np.allclose(out, x, atol=1e-3)
            seen.append(choice.why)
            graph.unload()
    return [*seen, device.counters.buffers_alive - before]


async def layer_times(device: Device) -> list[Any]:
    """Return the seconds of a small layer by kernels, and the buffers left."""
    before = device.counters.buffers_alive
    running = candidates(device)
    targets = {name: running[name] for name in (MEMORY_KERNELS, FLOAT_KERNELS)}
    times = await time_layers(device, targets, LayerShape("q4_0", 32, 64, 256, 2, 1, 32))
    found = {name: [each.one_token, each.many_tokens] for name, each in times.items()}
    return [found, device.counters.buffers_alive - before]
