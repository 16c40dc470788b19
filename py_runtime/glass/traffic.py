"""The least that each step of a plan must read and write, in bytes, at the live shapes.

Weights count whole, of tables only the rows that are looked up, of caches the positions that are
seen. Scratch memory between the kernels of one op is left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from py_runtime.graph import Graph
from py_runtime.graph.builder import LaunchSpec
from py_runtime.live.launch import Bindable, BufferCopy, Joined, Scratch, WeightSlice
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import OpCall, TensorValue

WRITTEN = re.compile(r"var<storage, read_write>\s*(\w+)")
TABLES = ("cos", "sin", "freqs_cos", "freqs_sin")  # arguments of which tokens take a row each
PICKS = ("select", "slice", "narrow")  # ops that read no more of a tensor than they write


@dataclass(frozen=True)
class Span:
    """The tokens of a call and the position of the first."""

    tokens: int
    start: int


class Traffic:
    """The traffic of a graph as it was last resized; `span` is known of decoders."""

    def __init__(self, graph: Graph, span: Span | None = None) -> None:
        self._builder = graph.builder
        self._program = graph.program
        self._span = span

    def of(self, step: int) -> tuple[int, int]:
        """Return the bytes that a step reads, and those that it writes."""
        spec = self._builder.steps[step]
        if isinstance(spec, BufferCopy):
            return int(spec.value), int(spec.value)
        call = self._program.ops[self._builder.step_ops[step]]
        written_names = set(WRITTEN.findall(spec.pipeline.source))
        read = written = 0
        for resource, names in _resources(spec):
            is_written = bool(written_names & names)
            nbytes = self._nbytes(call, resource, is_written)
            written += nbytes if is_written else 0
            is_carried = is_written and self._arg(call, resource) in REGISTRY[call.name].carries
            read += nbytes if not is_written or is_carried else 0
        if any(word in call.name for word in PICKS):
            read = min(read, written)
        return read, written

    def _nbytes(self, call: OpCall, resource: Bindable, is_written: bool) -> int:
        if isinstance(resource, LiveInt | Scratch):
            return 0
        if isinstance(resource, WeightSlice):
            return resource.nbytes
        parts = resource.parts if isinstance(resource, Joined) else (resource,)
        return sum(self._of_tensor(call, part, is_written) for part in parts)

    def _of_tensor(self, call: OpCall, tensor: LiveTensor, is_written: bool) -> int:
        value = self._program.values[tensor.id]
        assert isinstance(value, TensorValue)
        if not value.persistent or self._span is None or not tensor.max_dims:
            return tensor.live_bytes
        rows = tensor.max_dims[0]
        arg = self._arg(call, tensor)
        if arg in TABLES or ("embedding" in call.name and value.constant is not None):
            return tensor.max_bytes // rows * min(rows, self._span.tokens)
        if "cache" in arg and tensor.rank >= 3:
            rows, (tokens, start) = tensor.max_dims[-3], (self._span.tokens, self._span.start)
            seen = min(rows, tokens if is_written else start + tokens)
            return tensor.max_bytes // rows * seen
        if "experts" in call.name and arg in ("gate", "up", "down"):
            return self._of_experts(call, tensor)
        return tensor.max_bytes

    def _of_experts(self, call: OpCall, tensor: LiveTensor) -> int:
        """Return the bytes of the experts that the tokens can use at most."""
        given = dict(zip(REGISTRY[call.name].args, call.args, strict=True))
        logits, used = (self._program.values[given[name]] for name in ("logits", "used"))
        assert isinstance(logits, TensorValue)
        assert self._span is not None
        count, each = logits.dims[-1], int(getattr(used, "value", 1))
        return tensor.max_bytes * min(count, each * self._span.tokens) // count

    def _arg(self, call: OpCall, resource: Bindable) -> str:
        """Return the name of the argument that a tensor is given as."""
        if not isinstance(resource, LiveTensor):
            return ""
        names = zip(REGISTRY[call.name].args, call.args, strict=True)
        found = (name for name, arg in names if resource.id in self._program.flatten(arg))
        return next(found, "")


def _resources(spec: LaunchSpec) -> Iterator[tuple[Bindable, set[str]]]:
    """Yield what a launch binds, once each: one may stand in the place of another, unread."""
    names: dict[Bindable, set[str]] = {}
    for name, resource in spec.bindings:
        if resource is not None:
            names.setdefault(resource, set()).add(name)
    yield from names.items()
