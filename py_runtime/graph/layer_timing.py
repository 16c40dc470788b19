"""The seconds of a decoder's layer with each kind of kernels, for one token and for many.

The layer has the sizes of the model that is loaded, within limits: attention, and a gated MLP with
its norm, over weights that are all zero.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GpuDeviceLostError, InpageError
from py_runtime.base.shapes import numel, round_up
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.graph.graph import Graph
from py_runtime.graph.timed_plan import TimedPlan
from py_runtime.ops.registry import REGISTRY
from py_runtime.passes.linear_calls import KINDS
from py_runtime.program import (
    IntValue,
    NullValue,
    OpCall,
    Program,
    TensorValue,
    Value,
    as_constant,
    op_names,
)
from py_runtime.program.weight_kinds import (
    BLOCK,
    BLOCK_KINDS,
    Q4GSW,
    pack_linear_scales,
    q4gsw_row_bytes,
)
from py_runtime.program.writer import ProgramWriter, Ref

MAX_BYTES = 1 << 24  # of a matrix: of a larger one, rows are left out
UNIT = 256  # rows are a multiple of it, as down's columns are of every kind of weights
# Of a prompt, and in the caches. With 128 tokens and 8 million weights a large GPU is not busy: on
# an H200 without byte products floats took as long as bytes there, but less in the model.
TOKENS, POSITIONS = 256, 512
HEADS = (8, 8, 64)  # where the model has no attention
ROUNDS = {1: 16, TOKENS: 1}  # in a command buffer, by the number of tokens
SAMPLE_SECONDS = 0.008
LEAST_SECONDS = 1e-9  # where a clock is too coarse to tell
MAX_SAMPLES = 4
BUDGET_SECONDS = 0.3  # after which the samples that there are will do


@dataclass(frozen=True)
class LayerShape:
    """The sizes of a model's layers, as far as they decide which kernels are quicker."""

    kind: str  # of the weights that most of them are in
    group_size: int
    columns: int
    rows: int  # of gate, and of up
    heads: int
    kv_heads: int
    width: int  # of a head

    def __str__(self) -> str:
        heads = f"{self.heads}/{self.kv_heads}x{self.width}"
        return f"{self.kind}/{self.group_size} {self.columns}x{self.rows} {heads}"


@dataclass(frozen=True)
class LayerTimes:
    """The seconds of a layer."""

    one_token: float
    many_tokens: float  # for all TOKENS


def shape_of(program: Program) -> LayerShape | None:
    """Return the shape of the layers that a program repeats; None of one without linears."""
    weights: Counter[tuple[str, int, int, int]] = Counter()
    calls: Counter[tuple[str, int, int, int]] = Counter()
    for call in program.ops:
        if call.name in KINDS and (of := _product(program, call)) is not None:
            weights[of] += of[-2] * of[-1]
            calls[of] += 1
    if not weights:
        return None
    # The head is there once, however large it is.
    often = max(calls.values()) > 1
    repeated = {of: size for of, size in weights.items() if calls[of] > 1 or not often}
    kind, group_size, columns, rows = max(repeated, key=lambda of: repeated[of])
    most = MAX_BYTES // max(row_bytes(kind, columns), 1)
    rows = round_up(min(rows, max(most, 1)), UNIT)
    return LayerShape(kind, group_size, columns, rows, *_heads_of(program))


def _product(program: Program, call: OpCall) -> tuple[str, int, int, int] | None:
    """Return the kind, group size, columns and rows of a linear that kernels may be chosen for."""
    given = _given(program, call)
    x, weight = _dims(given.get("x")), _dims(given.get("weight"))
    if as_constant(given.get("weight", NullValue())) is None or len(weight) != 2 or not x:
        return None
    size = given.get("group_size")
    group_size = size.value if isinstance(size, IntValue) else BLOCK
    return KINDS[call.name], group_size, x[-1], weight[0]


def _heads_of(program: Program) -> tuple[int, int, int]:
    """Return the query heads, the heads of keys, and their width, as the first attention has it."""
    for call in program.ops:
        if call.name in op_names.FILLING:
            given = _given(program, call)
            q, cache = _dims(given.get("q")), _dims(given.get("k_cache"))
            if min(len(q), len(cache)) >= 2:
                return q[-2], cache[-2], cache[-1]
    return HEADS


def _given(program: Program, call: OpCall) -> dict[str, Value]:
    """Return the arguments of a call, which nobody has checked yet, by their names."""
    named = zip(REGISTRY[call.name].args, call.args, strict=False)
    known = range(len(program.values))
    return {name: program.values[value_id] for name, value_id in named if value_id in known}


def _dims(value: Value | None) -> tuple[int, ...]:
    """Return the dims of a tensor; none of anything else, or of a tensor that has no elements."""
    return value.dims if isinstance(value, TensorValue) and min(value.dims, default=0) > 0 else ()


def write_layer(shape: LayerShape) -> ProgramWriter:
    """Write attention over caches, and a gated MLP: x [tokens, columns], q, the position."""
    writer = ProgramWriter("measurement")
    columns, rows = shape.columns, shape.rows
    x = writer.input("x", (TOKENS, columns), F32, dynamic=(0,))
    q = writer.input("q", (TOKENS, shape.heads, shape.width), F32, dynamic=(0,))
    start_pos = writer.symint_input("start_pos")
    cache = (POSITIONS, shape.kv_heads, shape.width)
    caches = [writer.state(name, cache, F32) for name in ("k_cache", "v_cache")]
    attended = writer.tensor((TOKENS, shape.heads, shape.width), F32)
    writer.op("inpage.attend_kv_cache.default", q, *caches, start_pos, None, attended)
    norm = writer.constant("norm", np.ones(columns, np.float32))
    hidden = writer.tensor((TOKENS, rows), F32)
    gate_and_up = _weights(writer, shape, ("gate", "up"), rows, columns)
    writer.op("inpage.swiglu.default", x, norm, 1e-5, *gate_and_up, hidden)
    out = writer.tensor((TOKENS, columns), F32)
    down = _weights(writer, shape, ("down",), columns, rows)
    writer.op("inpage.linear_residual.default", hidden, *down, x, out)
    writer.output(out, attended)
    return writer


def _weights(
    writer: ProgramWriter, shape: LayerShape, names: tuple[str, ...], rows: int, columns: int
) -> tuple[Any, ...]:
    """Add weights that are zero; return the arguments that fused_arguments.WEIGHTS names."""
    weights: list[Ref] = []
    scales: list[Ref] = []
    for name in names:
        weight, of_blocks = _zeros(shape, rows, columns)
        weights.append(writer.constant(f"{name} weight", weight))
        if of_blocks is not None:
            scales.append(writer.constant(f"{name} scales", of_blocks))
    return shape.kind, weights, scales or None, shape.group_size, None


def row_bytes(kind: str, columns: int) -> int:
    """Return the bytes of a row of a weight, without its scales."""
    if kind == Q4GSW:
        return q4gsw_row_bytes(columns)
    if kind not in BLOCK_KINDS:
        return columns * F32.host.itemsize
    stored = BLOCK_KINDS[kind]
    return numel(stored.weight_dims(1, columns)) * stored.dtype.host.itemsize


def _zeros(shape: LayerShape, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a weight and its scales as its kind stores them."""
    if shape.kind == Q4GSW:
        groups = -(-columns // shape.group_size)
        weight = np.zeros((rows, q4gsw_row_bytes(columns)), np.uint8)
        return weight, pack_linear_scales(np.zeros((rows, groups), np.float32))
    if shape.kind not in BLOCK_KINDS:
        return np.zeros((rows, columns), np.float32), None
    stored = BLOCK_KINDS[shape.kind]
    weight = np.zeros(stored.weight_dims(rows, columns), stored.dtype.host)
    if not stored.has_scales:
        return weight, None
    return weight, np.zeros(stored.scale_dims(rows, columns), stored.scale_dtype.host)


async def time_layers(
    device: Device, targets: Mapping[str, KernelTarget], shape: LayerShape
) -> dict[str, LayerTimes]:
    """Return the times of a layer by each target's name; one that does not run has none.

    Targets take turns, since a graphics processor that was idle is slow at first.
    """
    samples: dict[str, dict[int, list[float]]] = {}
    async with AsyncExitStack() as stack:
        layers: dict[str, Layer] = {}
        for name, target in targets.items():
            try:
                layers[name] = await stack.enter_async_context(loaded_layer(device, target, shape))
            except GpuDeviceLostError:
                raise
            except InpageError:
                continue
            samples[name] = {tokens: [] for tokens in ROUNDS}
        started = time.perf_counter()
        for number in range(MAX_SAMPLES):
            if number and time.perf_counter() - started > BUDGET_SECONDS:
                break
            for tokens in ROUNDS:
                for name, layer in layers.items():
                    samples[name][tokens].append(await layer.seconds(tokens))
    return {
        name: LayerTimes(*(max(min(each), LEAST_SECONDS) for each in taken.values()))
        for name, taken in samples.items()
    }


@asynccontextmanager
async def loaded_layer(
    device: Device, target: KernelTarget, shape: LayerShape
) -> AsyncIterator["Layer"]:
    """Load a layer and run it once with each number of tokens; unload it afterwards."""
    writer = write_layer(shape)
    graph = await Graph.load(device, writer.program(), writer.constants, target=target, passes=())
    plans: dict[int, TimedPlan] = {}
    try:
        layer = Layer(graph, shape, plans)
        for tokens, rounds in ROUNDS.items():
            await layer.compute(tokens)
            plans[tokens] = TimedPlan(device, graph, rounds, SAMPLE_SECONDS)
        yield layer
    finally:
        for plan in plans.values():
            plan.release()
        graph.unload()


class Layer:
    """A layer on a device, with a plan for each number of tokens."""

    def __init__(self, graph: Graph, shape: LayerShape, plans: dict[int, TimedPlan]) -> None:
        self._graph, self._shape, self._plans = graph, shape, plans

    async def compute(self, tokens: int) -> None:
        """Compute at the end of the context, and leave the graph at these shapes."""
        x = np.zeros((tokens, self._shape.columns), np.float32)
        q = np.zeros((tokens, self._shape.heads, self._shape.width), np.float32)
        await self._graph.compute([x, q, POSITIONS - tokens], (0, 1))

    async def seconds(self, tokens: int) -> float:
        """Return the seconds of one run."""
        await self.compute(tokens)
        return await self._plans[tokens].seconds()
