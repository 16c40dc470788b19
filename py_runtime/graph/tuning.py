"""The choice of kernels for an adapter: by the user's wish, by features, or by a measurement.

A software adapter that says it is one, with its four lanes, is slow at barriers: it gets the
portable kernels. Elsewhere features mislead: a graphics processor may report subgroups of 4 or 8,
or none, and still want the wide kernels, or a software adapter subgroups of 16. There the one
kernel that decoding is made of, a matrix-vector product, runs with every variant for a moment. The
result is remembered, so that it costs one load in a browser's life. graph/device_choice.py keeps
its own result, whether the CPU is faster still, in the same note.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

import py_runtime
from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GpuDeviceLostError, InpageError, RequestError
from py_runtime.gpu import Device, FoundAdapter, Plan, Read
from py_runtime.gpu.kernel_target import (
    KERNELS,
    MIN_WIDE_SUBGROUP,
    KernelTarget,
    candidates,
)
from py_runtime.graph.graph import Graph
from py_runtime.program.weight_kinds import BLOCK
from py_runtime.program.writer import ProgramWriter

NOTE = "kernels"
FEATURES, MEASURED, REMEMBERED, ASKED_FOR = "features", "measured", "remembered", "asked for"
ROWS, COLUMNS = 2048, 1024  # a megabyte of 4-bit weights
LIMIT_SECONDS = 2.0  # a compiler that takes longer has lost
SAMPLES = 3
SAMPLE_SECONDS = 0.002
ROUNDS = 16  # of one command buffer: each takes as long to submit as a few products
MAX_REPEATS = 8
CLEARLY = 1.2  # times faster than what the features say, or they keep the last word


class Notes(Protocol):
    """Storage that remembers a measurement (folder/notes.py)."""

    def platform_name(self) -> str: ...

    async def read_note(self, name: str) -> Any: ...

    async def write_note(self, name: str, value: Any) -> None: ...


@dataclass(frozen=True)
class KernelChoice:
    """The kernels that a graph is built with, and who chose them."""

    target: KernelTarget
    why: str  # FEATURES, MEASURED, REMEMBERED or ASKED_FOR

    @property
    def wanted(self) -> str | None:
        """Return the name to ask for to get the same kernels on another device."""
        return self.target.kernels if self.why == ASKED_FOR else None


async def choose_kernels(device: Device, notes: Notes, wanted: str | None = None) -> KernelChoice:
    """Choose the kernels of a graph: the `wanted` ones, or those that suit the device.

    If a measurement fails, the choice by features stands.
    """
    running = candidates(device)
    if wanted is not None:
        return KernelChoice(_asked_for(wanted, running), ASKED_FOR)
    expected = next(iter(running.values()))
    if expected.cpu or is_plain_software(device, expected):
        return KernelChoice(expected, FEATURES)
    note = await read_note(FoundAdapter(device.adapter, device.features), notes)
    if note.get("kernels") in running:
        return KernelChoice(running[note["kernels"]], REMEMBERED)
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            choice = KernelChoice(await quickest(device, list(running.values())), MEASURED)
    except GpuDeviceLostError:
        return KernelChoice(expected, FEATURES)
    except Exception:  # a driver that fails here must not stop a load that may well succeed
        choice = KernelChoice(expected, FEATURES)
    await notes.write_note(NOTE, {**note, "kernels": choice.target.kernels})
    return choice


async def read_note(found: FoundAdapter, notes: Notes) -> dict[str, Any]:
    """Return what was measured of an adapter: `kernels` and `device`, if they were.

    `of` says which adapter, browser and version it is about.
    """
    adapter = [*asdict(found.adapter).values(), *sorted(found.features)]
    key = [*adapter, notes.platform_name(), py_runtime.__version__]
    note = await notes.read_note(NOTE)
    return note if isinstance(note, dict) and note.get("of") == key else {"of": key}


def check_kernels(wanted: object) -> None:
    """Raise RequestError unless `wanted` is None or the name of kernels."""
    if wanted is not None and wanted not in KERNELS:
        names = ", ".join(KERNELS)
        raise RequestError(f"kernels must be one of {names}, got {wanted!r}", "kernels")


def _asked_for(wanted: str, running: dict[str, KernelTarget]) -> KernelTarget:
    check_kernels(wanted)
    if wanted not in running:
        names = " or ".join(running)
        raise RequestError(
            f"this device does not run the kernels '{wanted}'; it runs {names}", "kernels"
        )
    return running[wanted]


def is_plain_software(device: Device, expected: KernelTarget) -> bool:
    """Return whether the adapter is certainly software; measuring there would take seconds."""
    return device.adapter.is_fallback and expected.lanes < MIN_WIDE_SUBGROUP


async def quickest(device: Device, targets: Sequence[KernelTarget]) -> KernelTarget:
    """Return the first target, which the features suggest, unless another is clearly faster."""
    expected, *others = zip(await time_products(device, targets), targets, strict=True)
    best = min(others, key=lambda timed: timed[0])
    return best[1] if best[0] * CLEARLY < expected[0] else expected[1]


async def time_products(device: Device, targets: Sequence[KernelTarget]) -> list[float]:
    """Return the seconds of each target's matrix-vector product, the least of a few samples.

    A target that does not run takes infinitely long. Targets take turns, since a graphics processor
    that was idle is slow at first. The wall clock times many products at once: browsers round
    timestamps to more than one product takes.
    """
    async with AsyncExitStack() as stack:
        products: list[Product | None] = []
        for target in targets:
            try:
                products.append(await stack.enter_async_context(loaded(device, target)))
            except GpuDeviceLostError:
                raise
            except InpageError:
                products.append(None)
        samples = [
            [await product.seconds() if product else math.inf for product in products]
            for _ in range(SAMPLES)
        ]
        return [min(each) for each in zip(*samples, strict=True)]


@asynccontextmanager
async def loaded(device: Device, target: KernelTarget) -> AsyncIterator["Product"]:
    """Load a graph of one product and run it once; unload it afterwards."""
    program, constants = matrix_vector_product()
    graph = await Graph.load(device, program, constants, target=target, passes=())
    try:
        await graph.run([np.zeros((1, COLUMNS), np.float32)])
        plan = device.create_plan("measurement", [*graph.plan_steps] * ROUNDS)
        try:
            yield Product(device, graph, plan)
        finally:
            device.release([plan])
    finally:
        graph.unload()


class Product:
    """A matrix-vector product, submitted many times at once."""

    def __init__(self, device: Device, graph: Graph, plan: Plan) -> None:
        self._device, self._graph, self._plan = device, graph, plan
        self._read = Read(graph.buffer(graph.program.outputs[0]), 4)
        self._repeats = 1

    async def seconds(self) -> float:
        """Return the seconds of one product.

        Enough are submitted at once that the round trip does not matter.
        """
        while True:
            taken = await self._submit()
            if taken >= SAMPLE_SECONDS or self._repeats >= MAX_REPEATS:
                return taken / (self._repeats * ROUNDS)
            self._repeats *= 2

    async def _submit(self) -> float:
        started = time.perf_counter()
        counts = np.tile(self._graph.live_counts((0,)), (ROUNDS, 1))
        await self._device.submit_and_read(self._plan, counts, [], [self._read], self._repeats)
        return time.perf_counter() - started


def matrix_vector_product() -> tuple[Any, dict[str, np.ndarray]]:
    """Return (program, constants) of a product over 4-bit weights: most of what decoding does."""
    writer = ProgramWriter("measurement")
    x = writer.input("x", (1, COLUMNS), F32)
    weight = writer.constant("weight", np.zeros((ROWS, COLUMNS // 2), np.uint8))
    scales = writer.constant("scales", np.zeros((COLUMNS // BLOCK, ROWS), np.float32))
    out = writer.tensor((1, ROWS), F32)
    writer.op("et_vk.linear_q4gsw.default", x, weight, scales, BLOCK, None, out)
    writer.output(out)
    return writer.program(), writer.constants
