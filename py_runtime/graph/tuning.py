"""The choice of kernels for an adapter: by the user's wish, by features, or by a measurement.

A software adapter that says it is one, with its four lanes, is slow at barriers: it gets the
portable kernels. Elsewhere features mislead: a graphics processor may report subgroups of 4 or 8,
or none, and still want the wide kernels, or a software adapter subgroups of 16. There the one
kernel that decoding is made of, a matrix-vector product, runs with every variant for a moment.

Graphics processors differ further: some have no instruction for products of bytes, and on some
subgroups are slower than workgroup memory. There a layer of the model's sizes runs as well
(graph/layer_timing.py), for one token and for many, which may get different arithmetics.

Results are remembered, so that they cost one load in a browser's life, or one of each shape.
graph/device_choice.py keeps its own result, whether the CPU is faster still, in the same note.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import numpy as np

import py_runtime
from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GpuDeviceLostError, InpageError, RequestError
from py_runtime.gpu import Device, FoundAdapter
from py_runtime.gpu.kernel_target import (
    BYTES,
    FLOAT_KERNELS,
    FLOATS,
    HALF_KERNELS,
    KERNELS,
    MATRICES,
    MATRIX_KERNELS,
    MEMORY_KERNELS,
    MIN_WIDE_SUBGROUP,
    SUBGROUP_KERNELS,
    KernelTarget,
    candidates,
    seems_software,
)
from py_runtime.graph.graph import Graph
from py_runtime.graph.layer_timing import LayerShape, LayerTimes, shape_of, time_layers
from py_runtime.graph.timed_plan import TimedPlan
from py_runtime.ops.kernels.matrices import BY_BLOCKS
from py_runtime.ops.kernels.matrix_units import BEYOND_HALVES
from py_runtime.program import Program
from py_runtime.program.weight_kinds import BLOCK
from py_runtime.program.writer import ProgramWriter

NOTE = "kernels"
FEATURES, MEASURED, REMEMBERED, ASKED_FOR = "features", "measured", "remembered", "asked for"
ROWS, COLUMNS = 2048, 1024  # a megabyte of 4-bit weights
LIMIT_SECONDS = 2.0  # a compiler that takes longer has lost
LAYER_LIMITS = (3.0, 1.0)  # the same for a layer: of a GPU, and of what may be software
SAMPLES = 3
SAMPLE_SECONDS = 0.002
ROUNDS = 16  # of one command buffer
CLEARLY = 1.2  # times faster than what the features say, or they keep the last word
# The same for portable kernels where the features suggest wide ones. On software these take 6 to 7
# times as long; on a graphics processor that was idle they once seemed slower, too, though a token
# of the whole model takes a tenth of the time with them (an H200).
AS_ON_SOFTWARE = 3.0
NOTICEABLY = 1.05  # the same for a layer, which is timed for longer
MAX_SHAPES = 8  # that a note remembers
# Kernels that are not chosen by themselves: products in halves keep torch's tokens, but not its
# logits to what goldens allow (docs/speed.md).
ONLY_IF_ASKED = frozenset({HALF_KERNELS})


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
    times: Mapping[str, LayerTimes] = field(default_factory=dict)  # by the name of kernels

    @property
    def wanted(self) -> str | None:
        """Return the name to ask for to get the same kernels on another device."""
        return self.target.kernels if self.why == ASKED_FOR else None

    def with_caches(self, kv: str) -> "KernelChoice":
        """Return the same kernels over caches of keys and values of this type."""
        return replace(self, target=replace(self.target, kv=kv))

    def exactly(self) -> "KernelChoice":
        """Return the same kernels for a graph whose results are held to 1e-4 of torch's."""
        return replace(self, target=replace(self.target, exact=True))


async def choose_kernels(
    device: Device, notes: Notes, wanted: str | None = None, program: Program | None = None
) -> KernelChoice:
    """Choose the kernels of a graph: the `wanted` ones, or those that suit the device.

    A graphics processor gets those that suit the program's layers, too, where one is given. If a
    measurement fails, what was chosen before it stands.
    """
    if wanted is not None:
        return KernelChoice(_asked_for(wanted, candidates(device)), ASKED_FOR)
    running = to_choose_among(candidates(device))
    expected = next(iter(running.values()))
    if expected.cpu or is_plain_software(device, expected):
        return KernelChoice(expected, FEATURES)
    note = await read_note(FoundAdapter(device.adapter, device.features), notes)
    choice = await _choose_kind(device, notes, note, running)
    if program is None or not choice.target.wide or device.adapter.is_fallback:
        return choice
    shape = shape_of(program)
    if shape is None:
        return choice
    return await _choose_for_shape(device, notes, note, running, choice.target, shape) or choice


async def _choose_kind(
    device: Device, notes: Notes, note: dict[str, Any], running: Mapping[str, KernelTarget]
) -> KernelChoice:
    """Choose between portable and wide kernels; a measurement goes into the note."""
    expected = next(iter(running.values()))
    kinds = for_one_token(running)
    if note.get("kernels") in kinds:
        return KernelChoice(kinds[note["kernels"]], REMEMBERED)
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            choice = KernelChoice(await quickest(device, list(kinds.values())), MEASURED)
    except GpuDeviceLostError:
        return KernelChoice(expected, FEATURES)
    except Exception:  # a driver that fails here must not stop a load that may well succeed
        choice = KernelChoice(expected, FEATURES)
    note["kernels"] = choice.target.kernels
    await notes.write_note(NOTE, note)
    return choice


async def _choose_for_shape(
    device: Device,
    notes: Notes,
    note: dict[str, Any],
    running: Mapping[str, KernelTarget],
    before: KernelTarget,
    shape: LayerShape,
) -> KernelChoice | None:
    """Choose between wide kernels, and arithmetics, by a layer of this shape; None if it fails."""
    shapes = note["shapes"] if isinstance(note.get("shapes"), dict) else {}
    if (remembered := _from_note(shapes.get(str(shape)), running)) is not None:
        return remembered
    names = [SUBGROUP_KERNELS, MEMORY_KERNELS]
    names += [FLOAT_KERNELS] if shape.kind in BY_BLOCKS else []
    names += [MATRIX_KERNELS] if shape.kind not in BEYOND_HALVES else []
    compared = {name: running[name] for name in names if name in running}
    choice = None
    try:
        async with asyncio.timeout(LAYER_LIMITS[seems_software(device.adapter, device.features)]):
            times = await time_layers(device, compared, shape)
        by_bytes = replace(before, one_token=BYTES, many_tokens=BYTES)
        choice = KernelChoice(best_for(by_bytes, compared, times), MEASURED, times)
    except GpuDeviceLostError:
        return None
    except Exception:  # as above; a slow fault is not met again
        pass
    kept = choice or KernelChoice(before, FEATURES)
    others = [*shapes.items()][1 - MAX_SHAPES :]
    note["shapes"] = {**dict(others), str(shape): _as_note(kept)}
    await notes.write_note(NOTE, note)
    return choice


def best_for(
    before: KernelTarget, compared: Mapping[str, KernelTarget], times: Mapping[str, LayerTimes]
) -> KernelTarget:
    """Return the target that the times of a layer suggest: `before`, where nothing is better.

    How invocations work together is the same for any number of tokens; the arithmetic is not.
    """
    own = times.get(before.kernels)
    if own is None:
        return before
    chosen = before
    for name, other in times.items():
        gains = own.one_token / other.one_token * own.many_tokens / other.many_tokens
        is_slower = other.one_token > own.one_token * NOTICEABLY
        differs_in_lanes = name in (SUBGROUP_KERNELS, MEMORY_KERNELS)
        if differs_in_lanes and gains > NOTICEABLY**2 and not is_slower:
            chosen = compared[name]
    # The others were timed with the lanes that the features suggest: so are the bytes beside them.
    alike = replace(next(iter(compared.values())), one_token=BYTES, many_tokens=BYTES).kernels
    by_bytes = times.get(alike, own)
    one, many, least = BYTES, BYTES, by_bytes.many_tokens
    if (floats := times.get(FLOAT_KERNELS)) is not None:
        if floats.one_token * NOTICEABLY < by_bytes.one_token:
            one = FLOATS
        if floats.many_tokens * NOTICEABLY < least:
            many, least = FLOATS, floats.many_tokens
    units = times.get(MATRIX_KERNELS)
    if units is not None and units.many_tokens * NOTICEABLY < least:
        many = MATRICES
    return replace(chosen, one_token=one, many_tokens=many)


def _as_note(choice: KernelChoice) -> dict[str, Any]:
    """Return a choice as a note keeps it; times in microseconds."""
    target = choice.target
    return {
        "kernels": replace(target, one_token=BYTES, many_tokens=BYTES).kernels,
        "by": [target.one_token, target.many_tokens],
        "times": {
            name: [round(1e6 * each.one_token, 1), round(1e6 * each.many_tokens, 1)]
            for name, each in choice.times.items()
        },
    }


def _from_note(note: Any, running: Mapping[str, KernelTarget]) -> KernelChoice | None:
    """Return the choice that a note keeps; None if it makes no sense."""
    try:
        one, many = note["by"]
        of_many = {BYTES, FLOATS} | ({MATRICES} if MATRIX_KERNELS in running else set())
        if one not in (BYTES, FLOATS) or many not in of_many:
            return None
        target = replace(running[note["kernels"]], one_token=one, many_tokens=many)
        times = {
            str(name): LayerTimes(float(first) / 1e6, float(other) / 1e6)
            for name, (first, other) in note["times"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return KernelChoice(target, REMEMBERED, times)


async def read_note(found: FoundAdapter, notes: Notes) -> dict[str, Any]:
    """Return what was measured of an adapter: `kernels`, `device` and `shapes`, if they were.

    `of` says which adapter, browser and version it is about.
    """
    adapter = [*asdict(found.adapter).values(), *sorted(found.features)]
    key = [*adapter, notes.platform_name(), py_runtime.__version__]
    note = await notes.read_note(NOTE)
    return {**note} if isinstance(note, dict) and note.get("of") == key else {"of": key}


def to_choose_among(running: Mapping[str, KernelTarget]) -> dict[str, KernelTarget]:
    """Return the targets without those that are for people who ask for them."""
    return {name: target for name, target in running.items() if name not in ONLY_IF_ASKED}


def for_one_token(running: Mapping[str, KernelTarget]) -> dict[str, KernelTarget]:
    """Return those of them that one token tells apart: matrix units take many."""
    among = to_choose_among(running)
    return {name: target for name, target in among.items() if name != MATRIX_KERNELS}


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
    first, *others = zip(await time_products(device, targets), targets, strict=True)
    expected_seconds, expected = first
    for seconds, target in sorted(others, key=lambda timed: timed[0]):
        by = AS_ON_SOFTWARE if expected.wide and not target.wide else CLEARLY
        if seconds * by < expected_seconds:
            return target
    return expected


async def time_products(device: Device, targets: Sequence[KernelTarget]) -> list[float]:
    """Return the seconds of each target's matrix-vector product, the least of a few samples.

    A target that does not run takes infinitely long. Targets take turns, since a graphics processor
    that was idle is slow at first. The wall clock times many products at once: browsers round
    timestamps to more than one product takes.
    """
    async with AsyncExitStack() as stack:
        products: list[TimedPlan | None] = []
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
async def loaded(device: Device, target: KernelTarget) -> AsyncIterator[TimedPlan]:
    """Load a graph of one product and run it once; unload it afterwards."""
    program, constants = matrix_vector_product()
    graph = await Graph.load(device, program, constants, target=target, passes=())
    try:
        await graph.run([np.zeros((1, COLUMNS), np.float32)])
        plan = TimedPlan(device, graph, ROUNDS, SAMPLE_SECONDS)
        try:
            yield plan
        finally:
            plan.release()
    finally:
        graph.unload()


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
