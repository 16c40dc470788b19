"""Code that runs beside the engine, natively or in the page, on behalf of the tests."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from py_runtime.gpu import CPU, Device
from py_runtime.gpu.kernel_target import (
    HALF_KERNELS,
    MATRIX_KERNELS,
    PORTABLE_KERNELS,
    candidates,
)
from py_runtime.graph import Graph
from py_runtime.ops.kernels import few_tokens, gemm
from py_runtime.program.json_format import load_program
from tests.halves import having_halves
from tests.matrices import having_matrices


@contextmanager
def having(device: Device, limits: dict[str, int]) -> Iterator[None]:
    """Let the device have lower limits for a while."""
    own = device.limits
    device.limits = {**own, **limits}
    try:
        yield
    finally:
        device.limits = own


@contextmanager
def having_enough(tiles: int | None) -> Iterator[None]:
    """Let so many large tiles of a product be enough to take them, where a number is given.

    A few tokens then take what is for large matrices, too.
    """
    usual = gemm.MIN_SQUARES, gemm.MIN_SHARE
    of_few = few_tokens.MIN_ROWS, few_tokens.MIN_WEIGHTS
    if tiles is not None:
        gemm.MIN_SQUARES, gemm.MIN_SHARE = tiles, 0.0
        few_tokens.MIN_ROWS = few_tokens.MIN_WEIGHTS = 0
    try:
        yield
    finally:
        gemm.MIN_SQUARES, gemm.MIN_SHARE = usual
        few_tokens.MIN_ROWS, few_tokens.MIN_WEIGHTS = of_few


async def run_graph(
    device: Device,
    program: str,
    constants: dict[str, np.ndarray],
    calls: list[list[Any]],
    outputs: list[int] | None = None,
    kernels: str = PORTABLE_KERNELS,
    kv: str = "f32",
    limits: dict[str, int] | None = None,
    enough_tiles: int | None = None,
) -> list[list[np.ndarray]]:
    """Load a graph, call it again and again, and return each call's outputs.

    `kernels` may be those of real GPUs, and `kv` is the type of caches, on whatever device this is;
    `limits` are lower than its own, and from `enough_tiles` on products take large ones' kernels.
    """
    target = None
    posing = {HALF_KERNELS: having_halves, MATRIX_KERNELS: having_matrices}.get(kernels)
    with posing(device) if posing else nullcontext():
        if kernels != PORTABLE_KERNELS or kv != "f32":
            found = candidates(device)
            target = found["cpu"] if device.kind == CPU else found[kernels]
            target = replace(target, storage_buffers=max(10, target.storage_buffers), kv=kv)
        with having(device, limits or {}), having_enough(enough_tiles):
            graph = await Graph.load(device, load_program(program), constants, target=target)
    try:
        with having_enough(enough_tiles):
            return [await graph.run(inputs, outputs) for inputs in calls]
    finally:
        graph.unload()


async def buffers_before_and_after(
    device: Device, program: str, constants: dict[str, np.ndarray], calls: list[list[Any]]
) -> list[list[str]]:
    """Return the handles of all tensor buffers when loaded, and after all calls."""
    graph = await Graph.load(device, load_program(program), constants)
    tensors = [entry.value for entry in graph.program.inputs] + list(graph.program.outputs)
    seen = []
    for inputs in (None, *calls):
        if inputs is not None:
            await graph.run(inputs)
        seen.append([str(graph.buffer(value_id).handle) for value_id in tensors])
    graph.unload()
    return [seen[0], seen[-1]]


async def same_call_twice(
    device: Device, program: str, constants: dict[str, np.ndarray], inputs: list[Any]
) -> list[Any]:
    """Make the same call twice; return outputs, ops resized and buffer writes."""
    graph = await Graph.load(device, load_program(program), constants)
    outputs, resized, writes = [], [], []
    for _ in range(2):
        device.counters.reset()
        outputs.append((await graph.run(inputs))[0])
        resized.append(graph.resize_stats.ops_resized)
        writes.append(device.counters.writes)
    graph.unload()
    return [outputs, resized, writes]
