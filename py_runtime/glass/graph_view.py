"""The graph as a picture: the ops of one layer with their live shapes, before or after the passes.

view = await graph_view(model, "layer 3", tokens=5, context=20)
about = await op_view(model, view.nodes[0].id)       # shaders, parameters, arguments
await values_of(model, view.nodes[0].id)             # what it computes, by a probed run
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.base.html import as_html
from py_runtime.glass.calls import GraphCall, calls_for, running
from py_runtime.glass.places import Place, places_of
from py_runtime.graph import Graph
from py_runtime.graph.builder import Builder, LaunchSpec
from py_runtime.graph.probes import run_probed
from py_runtime.graph.resize import LiveGraph
from py_runtime.live.launch import Joined, Launch, Scratch, WeightSlice
from py_runtime.model import Model
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NullValue,
    Program,
    StringValue,
    SymIntValue,
    TensorValue,
    ValueListValue,
)

FIRST_NUMBERS = 16
BINS = 24  # of a histogram
PLAIN = (IntValue, DoubleValue, BoolValue, StringValue)
LISTS = (IntListValue, DoubleListValue, BoolListValue)
MAX_SHOWN = 80  # ops of a section; a graph without layers is shown from one of them on


@dataclass(frozen=True)
class Port:
    """An argument of an op: a tensor with its live dims, a SymInt with its value, or a number."""

    name: str  # of the argument
    kind: str  # "value", "constant", "state", "input", "symint" or "number"
    value_id: int
    label: str
    dtype: str = ""
    dims: tuple[int, ...] = ()
    max_dims: tuple[int, ...] = ()
    number: Any = None


@dataclass(frozen=True)
class Node:
    """An op."""

    id: int  # its index in the program
    op: str
    place: Place
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@dataclass(frozen=True)
class Edge:
    """A tensor or SymInt on its way; None stands for the world outside the section."""

    begin: int | None  # a node's id
    end: int | None
    value_id: int
    label: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class GraphView:
    """The ops of a section and the flow of data between them."""

    name: str
    section: str
    sections: tuple[str, ...]
    is_fused: bool  # after the passes
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    symints: dict[str, int]
    ops: int  # of the whole program

    def _repr_html_(self) -> str:
        when = "after the passes" if self.is_fused else "before the passes"
        symints = (f"{name} = {value}" for name, value in self.symints.items())
        rows = [
            (node.id, node.op, *(", ".join(map(_shape, p)) for p in (node.inputs, node.outputs)))
            for node in self.nodes
        ]
        facts = [self.section, when, *symints]
        return as_html(self.name, facts, ("", "op", "takes", "gives"), *rows)


@dataclass(frozen=True)
class Binding:
    """A buffer that a kernel binds."""

    name: str  # in WGSL
    what: str
    nbytes: int


@dataclass(frozen=True)
class LaunchView:
    """One launch of an op: the joined WGSL and the live numbers it runs with."""

    step: int  # of the plan
    shader: str
    source: str
    constants: dict[str, float]  # override constants
    workgroup_size: int
    grid: tuple[int, int, int]
    params: dict[str, Any]
    bindings: tuple[Binding, ...]


@dataclass(frozen=True)
class OpView:
    """All that is known of an op."""

    node: Node
    launches: tuple[LaunchView, ...]


@dataclass(frozen=True)
class Values:
    """The values of a tensor in one run."""

    label: str
    dtype: str
    dims: tuple[int, ...]
    first: tuple[float, ...]
    least: float
    most: float
    mean: float
    rms: float
    not_finite: int
    histogram: tuple[int, ...]  # of equal ranges from the least to the most


class Shapes:
    """A program's live side without a device: what its shapes and numbers are in a call."""

    def __init__(self, graph: Graph, program: Program) -> None:
        self.builder = Builder(program, graph.device.limits, graph.target)
        self.builder.build_ops()
        self.counts = np.zeros((len(self.builder.steps), 3), np.uint32)
        for row, step in zip(self.counts, self.builder.steps, strict=True):
            (step.launch if isinstance(step, LaunchSpec) else step).row = row.data
        self._live = LiveGraph(self.builder, self.counts)
        self._live.settle()

    def resize(self, inputs: Sequence[Any]) -> None:
        self._live.resize(inputs)


_shapes: WeakKeyDictionary[Graph, dict[bool, Shapes]] = WeakKeyDictionary()


def _shapes_of(graph: Graph, is_fused: bool, call: GraphCall) -> Shapes:
    known = _shapes.setdefault(graph, {})
    if is_fused not in known:
        known[is_fused] = Shapes(graph, graph.program if is_fused else graph.written)
    known[is_fused].resize(call.inputs)
    return known[is_fused]


async def graph_view(
    target: Model | Graph,
    section: str | None = None,
    *,
    fused: bool = True,
    tokens: int = 1,
    context: int = 0,
    inputs: Sequence[Any] | None = None,
    first: int = 0,
) -> GraphView:
    """Return a section ("embedding", "layer 3", "head"), with the shapes of a call.

    A graph without layers is shown from the op `first` on.
    """
    graph, calls = await calls_for(target, tokens, context, inputs)
    shapes, places = _shapes_of(graph, fused, calls[-1]), places_of(graph)
    sections = places.sections
    if sections and section is None:
        section = sections[0]
    if section is not None and section not in sections:
        raise RequestError(f"there is no '{section}'; there are {', '.join(sections)}")
    found = places.after if fused else places.before
    chosen = [at for at, place in enumerate(found) if section in (None, place.section)]
    chosen = chosen[first : first + MAX_SHOWN]
    program = shapes.builder.program
    symints = {
        getattr(program.values[symint.id], "name", "") or symint.label: symint.value
        for symint in shapes.builder.symints.values()
    }
    return GraphView(
        program.name,
        section or "",
        tuple(sections),
        fused,
        tuple(_node(shapes, at, found[at]) for at in chosen),
        tuple(_edges(shapes, chosen)),
        symints,
        len(program.ops),
    )


async def op_view(
    target: Model | Graph,
    index: int,
    *,
    fused: bool = True,
    tokens: int = 1,
    context: int = 0,
    inputs: Sequence[Any] | None = None,
) -> OpView:
    """Return an op with its shaders, as a call launches them."""
    graph, calls = await calls_for(target, tokens, context, inputs)
    shapes, places = _shapes_of(graph, fused, calls[-1]), places_of(graph)
    builder = shapes.builder
    _check_op(builder.program, index)
    node = _node(shapes, index, (places.after if fused else places.before)[index])
    swapped = graph.variant.pipelines if fused and graph.variant else {}
    launches = tuple(
        _launch(spec, step, shapes.counts[step], swapped.get(step, spec.pipeline).source)
        for step, (spec, op) in enumerate(zip(builder.steps, builder.step_ops, strict=True))
        if op == index and isinstance(spec, LaunchSpec)
    )
    return OpView(node, launches)


async def values_of(
    target: Model | Graph,
    index: int,
    *,
    tokens: int | Sequence[int] = 1,
    context: int = 0,
    inputs: Sequence[Any] | None = None,
) -> list[Values]:
    """Return what an op of the running program gave in a call, by a probed run."""
    async with running(target, tokens, context, inputs) as (graph, calls):
        program = graph.program
        _check_op(program, index)
        for call in calls[:-1]:
            await graph.compute(call.inputs, [])
        outs = [
            value_id
            for value_id in program.writes(program.ops[index])
            if isinstance(program.values[value_id], TensorValue)
        ]
        arrays = await run_probed(graph, calls[-1].inputs, outs)
        return [_values(program, value_id, arrays[value_id]) for value_id in outs]


def _check_op(program: Program, index: int) -> None:
    if not 0 <= index < len(program.ops):
        raise RequestError(f"there is no op {index}; the last is {len(program.ops) - 1}")


def _values(program: Program, value_id: int, array: np.ndarray) -> Values:
    value = program.values[value_id]
    assert isinstance(value, TensorValue)
    flat = array.astype(np.float64).reshape(-1)
    finite = flat[np.isfinite(flat)]
    shown = finite if finite.size else np.zeros(1)
    return Values(
        program.label(value_id),
        value.dtype.name,
        tuple(array.shape),
        tuple(flat[:FIRST_NUMBERS].tolist()),
        float(shown.min()),
        float(shown.max()),
        float(shown.mean()),
        float(np.sqrt(np.square(shown).mean())),
        int(flat.size - finite.size),
        tuple(np.histogram(shown, BINS)[0].tolist()),
    )


def _node(shapes: Shapes, index: int, place: Place) -> Node:
    program = shapes.builder.program
    call = program.ops[index]
    names = REGISTRY[call.name].args
    *inputs, out = [
        [_port(shapes, name, value_id) for value_id in program.flatten(arg)]
        for name, arg in zip(names, call.args, strict=True)
    ]
    taken = [port for ports in inputs for port in ports if port.kind != "null"]
    return Node(index, call.name, place, tuple(taken), tuple(out))


def _port(shapes: Shapes, name: str, value_id: int) -> Port:
    program = shapes.builder.program
    value, label = program.values[value_id], program.label(value_id)
    if isinstance(value, TensorValue):
        tensor = shapes.builder.tensors[value_id]
        given = {entry.value for entry in program.inputs}
        kind = "state" if value.state else "constant" if value.constant is not None else "value"
        kind = "input" if value_id in given else kind
        return Port(name, kind, value_id, label, value.dtype.name, tensor.dims, tensor.max_dims)
    number: Any = None
    kind = "null" if isinstance(value, NullValue) else "number"
    if isinstance(value, SymIntValue):
        kind, number = "symint", shapes.builder.symints[value_id].value
    elif isinstance(value, PLAIN):
        number = value.value
    elif isinstance(value, LISTS):
        number = list(value.values)
    assert not isinstance(value, ValueListValue), "lists were flattened"
    return Port(name, kind, value_id, label, number=number)


def _edges(shapes: Shapes, chosen: list[int]) -> Iterator[Edge]:
    program = shapes.builder.program
    inside = set(chosen)
    makers = {out: at for at, call in enumerate(program.ops) for out in program.writes(call)}
    read_outside = set(program.outputs)
    for at, call in enumerate(program.ops):
        if at not in inside:
            read_outside.update(program.reads(call))
    for at in chosen:
        call = program.ops[at]
        for value_id in dict.fromkeys(program.reads(call)):
            value = program.values[value_id]
            if not isinstance(value, TensorValue | SymIntValue):
                continue
            if isinstance(value, TensorValue) and value.constant is not None:
                continue
            begin = makers.get(value_id)
            yield _edge(shapes, begin if begin in inside else None, at, value_id)
        for value_id in program.writes(call):
            if value_id in read_outside:
                yield _edge(shapes, at, None, value_id)


def _edge(shapes: Shapes, begin: int | None, end: int | None, value_id: int) -> Edge:
    tensor = shapes.builder.tensors.get(value_id)
    label = getattr(shapes.builder.program.values[value_id], "name", "")
    return Edge(begin, end, value_id, label, tensor.dims if tensor is not None else ())


def _launch(spec: LaunchSpec, step: int, counts: np.ndarray, source: str) -> LaunchView:
    x, y, z = counts.tolist()
    return LaunchView(
        step,
        spec.pipeline.label,
        source,
        dict(spec.pipeline.constants),
        spec.launch.workgroup,
        (x, y, z),
        params_of(spec.launch),
        tuple(_binding(name, resource) for name, resource in spec.bindings if resource is not None),
    )


def _binding(name: str, resource: Any) -> Binding:
    if isinstance(resource, Joined | WeightSlice | Scratch):
        return Binding(name, resource.label, resource.nbytes)
    if hasattr(resource, "max_bytes"):
        return Binding(name, resource.label, resource.max_bytes)
    return Binding(name, resource.label, 4)


def params_of(launch: Launch) -> dict[str, Any]:
    """Return a launch's parameters by their WGSL names; vectors and arrays are lists."""
    packed = launch.value[1]
    if not packed:
        return {}
    numbers = launch.layout.struct.unpack(packed)
    offsets = [*launch.layout.offsets.values(), 4 * len(numbers)]
    found = {}
    for name, begin, end in zip(launch.layout.names, offsets, offsets[1:], strict=False):
        own = numbers[begin // 4 : end // 4]
        found[name] = own[0] if len(own) == 1 else list(own)
    return found


def _shape(port: Port) -> str:
    if port.kind in ("symint", "number"):
        return f"{port.name}={port.number}"
    return f"{port.name} {list(port.dims)}"
