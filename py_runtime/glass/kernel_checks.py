"""Checks of a changed kernel or op: what it computes beside the one it replaces, and how fast."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np

from py_runtime.base.errors import GraphError, RequestError
from py_runtime.glass.calls import GraphCall
from py_runtime.gpu import Plan, Read, Write
from py_runtime.gpu.interface import TIMESTAMPS
from py_runtime.graph import Graph
from py_runtime.graph.graph import as_host
from py_runtime.live.launch import Scratch
from py_runtime.live.values import LiveTensor
from py_runtime.model import Model
from py_runtime.model.verify import Precision, difference
from py_runtime.ops.registry import REGISTRY

POISON = 0xFF  # of every byte: no number, so that what a kernel leaves out is seen
MOST_POISON = 64 << 20  # bytes of a buffer
ROUNDS = 7  # of timing, each once before and once after


@dataclass(frozen=True)
class Case:
    """An op in one call, with the old kernel and the new one."""

    where: str  # "op 3 (…)", or "logits"
    tokens: int
    context: int
    dims: tuple[int, ...]
    relative_rms: float
    worst: float
    ok: bool


@dataclass(frozen=True)
class Times:
    """Microseconds of the changed steps in one call, taken in turns."""

    tokens: int
    context: int
    before: float
    after: float


async def compare_op(
    graph: Graph,
    op_index: int,
    steps: Sequence[int],
    call: GraphCall,
    plans: tuple[Plan, Plan],
    allowed: Precision,
) -> Case | None:
    """Run the ops ahead once, then this op by both plans on the same inputs and states.

    None: such a call launches none of the changed steps of this op.
    """
    async with graph.lock:
        graph.upload(call.inputs)
        counts = graph.live_counts(tuple(range(len(graph.program.outputs))))
        ops = np.array(graph.builder.step_ops)
        ahead, own = (
            np.where(chosen[:, None], counts, np.uint32(0))
            for chosen in (ops < op_index, ops == op_index)
        )
        if not own[list(steps)].any():
            return None
        before, after = plans
        states = _states(graph, op_index)
        reads = [_read(graph, tensor) for tensor in (*_outs(graph, op_index), *states)]
        graph.device.submit(graph.plan, ahead)
        kept = await graph.device.submit_and_read(None, None, [], reads)
        results = []
        for plan in (before, after):
            writes = [
                Write(read.buffer, data, read.offset)
                for read, data in zip(reads, kept, strict=True)
            ]
            writes = [*_poison(graph, op_index), *writes[len(reads) - len(states) :]]
            results.append(await graph.device.submit_and_read(plan, own, writes, reads))
        return _case(graph, op_index, call, results, allowed)


def _case(
    graph: Graph,
    op_index: int,
    call: GraphCall,
    results: list[list[np.ndarray]],
    allowed: Precision,
) -> Case:
    tensors = [*_outs(graph, op_index), *_states(graph, op_index)]
    op = graph.builder.ops[op_index]
    worst = rms = 0.0
    for tensor, old, new in zip(tensors, *results, strict=True):
        wanted, got = (as_host(tensor, data) for data in (old, new))
        if np.array_equal(wanted, got, equal_nan=True):
            continue
        found = difference(tensor.label, got, wanted.astype(np.float64), allowed)
        rms, worst = max(rms, found.relative_rms), max(worst, found.worst)
    ok = rms <= allowed.relative_rms and worst <= allowed.worst
    span = call.span
    sizes = (span.tokens, span.start) if span else (0, 0)
    return Case(op.where, *sizes, tensors[0].dims if tensors else (), rms, worst, ok)


async def time_in_turns(
    graph: Graph, steps: Iterable[int], call: GraphCall, plans: tuple[Plan, Plan]
) -> Times | None:
    """Measure these steps by both plans in turns; None where none runs in such a call."""
    async with graph.lock:
        graph.upload(call.inputs)
        every = graph.live_counts(tuple(range(len(graph.program.outputs))))
        counts = np.zeros_like(every)
        chosen = list(steps)
        counts[chosen] = every[chosen]
        if not counts.any():
            return None
        taken: tuple[list[float], list[float]] = ([], [])
        for turn in range(ROUNDS + 1):
            for plan, times in zip(plans, taken, strict=True):
                took = await _nanoseconds(graph, plan, counts)
                if turn:  # the first warms up
                    times.append(took)
        before, after = (float(np.median(times)) / 1000 for times in taken)
        sizes = (call.span.tokens, call.span.start) if call.span else (0, 0)
        return Times(*sizes, before, after)


async def _nanoseconds(graph: Graph, plan: Plan, counts: np.ndarray) -> float:
    if TIMESTAMPS in graph.device.features:
        return float((await graph.device.time_steps(plan, counts)).sum())
    started = perf_counter_ns()
    await graph.device.submit_and_read(plan, counts, [], [Read(graph.uniforms, 4)])
    return float(perf_counter_ns() - started)


def compare_arrays(
    where: str, call: GraphCall, got: np.ndarray, wanted: np.ndarray, allowed: Precision
) -> Case:
    """Compare two results of a call."""
    found = difference(where, got, wanted, allowed)
    sizes = (call.span.tokens, call.span.start) if call.span else (0, 0)
    return Case(where, *sizes, got.shape, found.relative_rms, found.worst, found.ok)


def _outs(graph: Graph, op_index: int) -> list[LiveTensor]:
    call, builder = graph.program.ops[op_index], graph.builder
    return [builder.tensors[v] for v in graph.program.writes(call) if v in builder.tensors]


def _states(graph: Graph, op_index: int) -> list[LiveTensor]:
    """Return what the op writes in place."""
    call, builder = graph.program.ops[op_index], graph.builder
    row = REGISTRY[call.name]
    given = zip(row.args, call.args, strict=True)
    return [builder.tensors[arg] for name, arg in given if name in row.mutates]


def _read(graph: Graph, tensor: LiveTensor) -> Read:
    buffer = graph.placed.buffers[tensor.id]
    return Read(buffer, tensor.live_bytes, graph.placed.offsets.get(tensor.id, 0))


def _poison(graph: Graph, op_index: int) -> list[Write]:
    """Return writes that spoil what the op is to write, its scratch memory included."""
    states = {tensor.id for tensor in _states(graph, op_index)}
    buffers = [
        graph.placed.buffers[tensor.id]
        for tensor in _outs(graph, op_index)
        if graph.builder.root(tensor.id) not in states
    ]
    for step, op in zip(graph.builder.steps, graph.builder.step_ops, strict=True):
        bound = getattr(step, "bindings", ()) if op == op_index else ()
        buffers += [
            graph.placed.scratch_buffer(each) for _, each in bound if isinstance(each, Scratch)
        ]
    return [
        Write(buffer, np.full(min(buffer.size, MOST_POISON), POISON, np.uint8))
        for buffer in dict.fromkeys(buffers)
    ]


def calls_that_fit(
    lengths: Sequence[tuple[int, int]], max_chunk: int, context: int
) -> list[tuple[int, int]]:
    """Return the (tokens, context) that a model takes in one call."""
    return [each for each in lengths if each[0] <= max_chunk and sum(each) <= context]


def check_kind(graph: Graph, what: str) -> None:
    """Raise GraphError on a device whose kernels are not WGSL."""
    if graph.target.cpu:
        raise GraphError(
            f"{what} is for GPUs: on the CPU kernels are C, compiled beforehand. Load the model "
            'onto a GPU, if there is one (device="gpu"); here its WGSL can be read'
        )


def check_plain(target: Model | Graph) -> None:
    """Raise RequestError for a model that is steered: its kernels run in another graph."""
    if isinstance(target, Model) and target.overlay is not None:
        raise RequestError("the model is steered: clear its edits first (`await clear(model)`)")
