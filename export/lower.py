"""The lowering of a torch graph to a program of the engine: each node becomes one op call.

The graph is torch.export's as it stands, or what the passes made of it; ops that write a cache in
place stay themselves. SymInts become live scalars: `x.shape[d]` a sym_size, `pos[-1].item()` a
select_as_symint, and their sums and products ops of their own. Maximum dims are the upper bounds of
the dynamic dims. Weights on the meta device become constants without data: whoever writes the model
folder has it.
"""

import operator
from collections.abc import Iterable
from typing import Any

import sympy
import torch
from torch import SymInt, Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from export.errors import ExportError
from export.module_graph import ModuleGraph, mutates
from export.support import (
    COMPUTED_DTYPES,
    DTYPE_OF,
    ITEM,
    SYMINT_ARITHMETIC,
    engine_name,
    is_supported,
    item_source,
    refuse_unsupported,
    torch_name,
    whereabouts,
)
from py_runtime.program.writer import ProgramWriter, Ref

WIDE_OR_BRAIN = (torch.float64, torch.bfloat16)
MAX_SIZE = 2**31 - 1  # elements along a dim
SYM_SIZE = torch.ops.aten.sym_size.int


def lower(exported: ExportedProgram, name: str = "graph") -> ProgramWriter:
    """Return the program and its constants; UnsupportedOpsError names every op it cannot take."""
    return lower_graph(ModuleGraph(exported), name)


def lower_graph(graph: ModuleGraph, name: str) -> ProgramWriter:
    """Each node becomes one op call; ExportError where one cannot."""
    return _Lowering(graph, name).run()


class _Lowering:
    def __init__(self, graph: ModuleGraph, name: str) -> None:
        self.graph = graph
        self.writer = ProgramWriter(name)
        self.refs: dict[Node, Ref | list[Ref]] = {}
        self.shared: dict[tuple[Any, ...], str] = {}  # tensors that are the same memory

    def run(self) -> ProgramWriter:
        nodes = self._needed_nodes()
        refuse_unsupported(nodes)
        self._lower_placeholders()
        for node in nodes:
            if node.op == "call_function":
                self._lower_call(node)
        for place, result in enumerate(self.graph.outputs):
            if result is None:
                continue
            ref = self.refs.get(result) if isinstance(result, Node) else None
            if not isinstance(ref, Ref):
                raise ExportError(
                    f"output {place} of the module is {result!r}; outputs must be tensors or live "
                    "scalars"
                )
            self.writer.output(ref)
        return self.writer

    def _needed_nodes(self) -> list[Node]:
        """Return the nodes that outputs and writes need; a live scalar needs its input alone."""
        needed: set[Node] = set()
        for node in reversed(list(self.graph.graph.nodes)):
            if node.op == "output" or node in needed or mutates(node):
                needed.add(node)
                needed.update(_dependencies(node))
        return [node for node in self.graph.graph.nodes if node in needed]

    # Inputs and constants ----------------------------------------------------------------------

    def _lower_placeholders(self) -> None:
        mutated = {
            node.args[place]
            for node in self.graph.calls()
            if mutates(node)
            for place in _mutable_places(node)
        }
        for node in self.graph.inputs:
            if isinstance(node.meta["val"], SymInt | Tensor):  # anything else is traced in
                self.refs[node] = self._lower_input(node)
        for node, tensor in self.graph.tensors.items():
            if node.users:
                name = self.graph.names[node]
                self.refs[node] = self._lower_constant(name, tensor, node in mutated)

    def _lower_input(self, node: Node) -> Ref:
        value = node.meta["val"]
        if isinstance(value, SymInt):
            return self.writer.symint_input(node.name)
        if value.dtype not in COMPUTED_DTYPES:
            raise ExportError(
                f"input '{node.name}' is {value.dtype}; the engine takes float32, integers and bool"
            )
        dynamic = [axis for axis, size in enumerate(value.shape) if isinstance(size, SymInt)]
        return self.writer.input(node.name, _max_dims(node, value), DTYPE_OF[value.dtype], dynamic)

    def _lower_constant(self, name: str, tensor: Tensor, mutated: bool) -> Ref:
        if tensor.dtype in WIDE_OR_BRAIN:  # where an op takes them at all, it computes in float32
            tensor = tensor.float()
        if tensor.dtype not in DTYPE_OF:
            raise ExportError(
                f"constant '{name}' is {tensor.dtype}, which the engine does not have"
            )
        dims, dtype = tuple(tensor.shape), DTYPE_OF[tensor.dtype]
        if mutated and (tensor.is_meta or not tensor.any()):
            return self.writer.state(name, dims, dtype)
        memory = (tensor.untyped_storage()._cdata, tensor.storage_offset(), dims, tensor.stride())
        shared = name if mutated else self.shared.setdefault(memory, name)
        if tensor.is_meta:
            return self.writer.declare_constant(shared, dims, dtype)
        return self.writer.constant(shared, tensor.contiguous().numpy())

    # Calls -------------------------------------------------------------------------------------

    def _lower_call(self, node: Node) -> None:
        if node.target is operator.getitem:
            source, place = node.args
            outputs = self.refs[source]
            assert isinstance(outputs, list), "getitem picks from several outputs"
            self.refs[node] = outputs[place]
            return
        if node.target in ITEM:
            source, dim, index = item_source(node)
            args: list[Any] = [self.refs[source], dim, index]
        elif node.target in SYMINT_ARITHMETIC or node.target is SYM_SIZE:
            args = [self._arg(arg) for arg in node.args]
        else:
            args = [self._arg(arg) for arg in _schema_args(node)]
        out = self._lower_output(node)
        self.refs[node] = out
        self.writer.op(engine_name(node), *args, out, source=whereabouts(node).strip(" :"))

    def _lower_output(self, node: Node) -> Ref | list[Ref]:
        value = node.meta["val"]
        if isinstance(value, SymInt | int):
            return self.writer.symint(node.name)
        if isinstance(value, tuple | list):
            return [self._tensor(node, each) for each in value]
        return self._tensor(node, value)

    def _tensor(self, node: Node, value: Tensor) -> Ref:
        name = node.name
        return self.writer.tensor(_max_dims(node, value), DTYPE_OF[value.dtype], name)

    def _arg(self, arg: Any) -> Any:
        if isinstance(arg, Node):
            return self.refs[arg]
        if isinstance(arg, list | tuple):
            return [self._arg(item) for item in arg]
        if isinstance(arg, torch.dtype | torch.device | torch.layout | torch.memory_format):
            return None  # the output's declared dtype says it; the rest has no meaning on the GPU
        return arg


def _dependencies(node: Node) -> Iterable[Node]:
    if node.target in ITEM and is_supported(node):
        return [item_source(node)[0]]
    return node.all_input_nodes


def _mutable_places(node: Node) -> list[int]:
    arguments = node.target._schema.arguments
    return [
        place
        for place, argument in enumerate(arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def _schema_args(node: Node) -> list[Any]:
    """Return all arguments in the schema's order; the engine's calls have no gaps for defaults."""
    arguments = node.target._schema.arguments
    given = dict(zip((argument.name for argument in arguments), node.args, strict=False))
    given.update(node.kwargs)
    return [given.get(argument.name, argument.default_value) for argument in arguments]


# Sizes -----------------------------------------------------------------------------------------


def _max_dims(node: Node, value: Tensor) -> tuple[int, ...]:
    return tuple(
        _upper_bound(node, size) if isinstance(size, SymInt) else size for size in value.shape
    )


def _upper_bound(node: Node, size: SymInt) -> int:
    environment, expression = size.node.shape_env, size.node.expr
    bounds = [environment.bound_sympy(expression).upper, *_checked_bounds(environment, expression)]
    least = min(bounds)
    if not least.is_finite or least > MAX_SIZE:
        raise ExportError(
            f"{torch_name(node)}{whereabouts(node)}: a dim of its result ({size}) has no upper "
            "bound; give the dynamic dim a max (Dim(…, max=…)), or say torch._check(size <= max)"
        )
    return int(least)


def _checked_bounds(environment: Any, expression: Any) -> list[Any]:
    """Return the bounds that torch._check(expression <= number) has promised."""
    bounds = []
    for asserts in environment.deferred_runtime_asserts.values():
        for promise in asserts:
            relation = environment.replace(promise.expr)
            if isinstance(relation, sympy.LessThan | sympy.StrictLessThan):
                slack = relation.gts - relation.lts + expression  # at least the expression
                if slack.is_number:
                    bounds.append(slack)
    return bounds
