"""Compilation of a graph's pipelines, with progress."""

import asyncio
from collections.abc import Sequence

from py_runtime.base.concurrency import together
from py_runtime.base.progress import SHADERS, Meter
from py_runtime.gpu import Device, PipelineSpec


async def compile_side_by_side(device: Device, specs: Sequence[PipelineSpec], meter: Meter) -> None:
    """Compile the pipelines concurrently and report each one; the device caches them."""

    async def compile_one(number: int, spec: PipelineSpec) -> None:
        await device.create_compute_pipelines([spec])
        meter.reach(SHADERS, str(number), 1)
        await asyncio.sleep(0)  # natively nothing else awaits here

    for number in range(len(specs)):
        meter.expect(SHADERS, str(number), 1)
    await together(*(compile_one(number, spec) for number, spec in enumerate(specs)))
