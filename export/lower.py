"""From a torch.export graph to a program of the engine: each node becomes one op call.

The graph is torch.export's as it stands (before functionalisation), so ops that write a cache in
place stay themselves. SymInts become live scalars: `x.shape[d]` a sym_size, `pos[-1].item()` a
select_as_symint, and their sums and products ops of their own. Maximum dims are the upper bounds of
the dynamic dims. Weights on the meta device become constants without data: whoever writes the model
folder has it.
"""

import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

import py_runtime.ops  # noqa: F401  (fills the registry)
from export.errors import UnsupportedOpsError
from export.torch_ops import ENGINE_NAMES
from py_runtime.dtypes import BOOL, F16, F32, I8, I32, I64, U8, DType
from py_runtime.ops.registry import REGISTRY
from py_runtime.program_writer import ProgramWriter, Ref

DTYPE_OF = {
    torch.float32: F32,
    torch.float16: F16,
    torch.int64: I64,
    torch.int32: I32,
    torch.int8: I8,
    torch.uint8: U8,
    torch.bool: BOOL,
}
SYMINT_ARITHMETIC = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.floordiv: "floordiv",
}
# torch.export's views and copies under the names the engine knows them by.
COPY_NAMES = {
    "aten.select.int": "aten.select_copy.int",
    "aten.slice.Tensor": "aten.slice_copy.Tensor",
    "aten.expand.default": "aten.expand_copy.default",
    "aten.split_with_sizes.default": "aten.split_with_sizes_copy.default",
}
ITEM = torch.ops.aten.item.default
SELECT = torch.ops.aten.select.int
SYM_SIZE = torch.ops.aten.sym_size.int


def lower(exported: ExportedProgram, name: str = "graph") -> ProgramWriter:
    """The program and its constants; raises UnsupportedOpsError naming every op it cannot take."""
    return _Lowering(exported, name).run()


class _Lowering:
    def __init__(self, exported: ExportedProgram, name: str) -> None:
        self.exported = exported
        self.writer = ProgramWriter(name)
        self.refs: dict[Node, Ref | list[Ref]] = {}
        self.shared: dict[tuple[Any, ...], str] = {}  # tensors that are the same memory

    def run(self) -> ProgramWriter:
        nodes = self._needed_nodes()
        self._refuse_unsupported(nodes)
        self._lower_placeholders()
        for node in nodes:
            if node.op == "call_function":
                self._lower_call(node)
        (output,) = (node for node in self.exported.graph.nodes if node.op == "output")
        for result in output.args[0]:
            ref = self.refs[result]
            assert isinstance(ref, Ref), "an output is one value"
            self.writer.output(ref)
        return self.writer

    # Which nodes matter ------------------------------------------------------------------------

    def _needed_nodes(self) -> list[Node]:
        """What outputs and in-place writes depend on; assertions on shapes are the engine's job."""
        needed: set[Node] = set()
        for node in reversed(list(self.exported.graph.nodes)):
            if node.op == "output" or node in needed or _mutates(node):
                needed.add(node)
                needed.update(_dependencies(node))
        return [node for node in self.exported.graph.nodes if node in needed]

    def _refuse_unsupported(self, nodes: Iterable[Node]) -> None:
        faults = [
            f"{_torch_name(node)}{_whereabouts(node)}"
            for node in nodes
            if node.op == "call_function" and not _is_supported(node)
        ]
        if faults:
            raise UnsupportedOpsError(faults)

    # Inputs and constants ----------------------------------------------------------------------

    def _lower_placeholders(self) -> None:
        placeholders = {n.name: n for n in self.exported.graph.nodes if n.op == "placeholder"}
        mutated = {
            node.args[place]
            for node in self.exported.graph.nodes
            if _mutates(node)
            for place in _mutable_places(node)
        }
        for spec in self.exported.graph_signature.input_specs:
            node = placeholders[spec.arg.name]
            if spec.kind == InputKind.USER_INPUT:
                self.refs[node] = self._lower_input(node)
            elif node.users:
                tensor = self._tensor(spec.target)
                self.refs[node] = self._lower_constant(str(spec.target), tensor, node in mutated)

    def _tensor(self, target: str | None) -> torch.Tensor:
        assert target is not None, "parameters, buffers and constants have names"
        found = self.exported.state_dict.get(target)
        return (self.exported.constants[target] if found is None else found).detach()

    def _lower_input(self, node: Node) -> Ref:
        value = node.meta["val"]
        if isinstance(value, torch.SymInt | int):
            return self.writer.symint_input(node.name)
        dynamic = [axis for axis, size in enumerate(value.shape) if isinstance(size, torch.SymInt)]
        return self.writer.input(node.name, _max_dims(value), _dtype(value), dynamic)

    def _lower_constant(self, name: str, tensor: torch.Tensor, mutated: bool) -> Ref:
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
            outputs = self.refs[source]  # type: ignore[index]
            assert isinstance(outputs, list), "getitem picks from several outputs"
            self.refs[node] = outputs[place]  # type: ignore[index]
            return
        if node.target is ITEM:
            source, dim, index = _item_source(node)
            args: list[Any] = [self.refs[source], dim, index]
        elif node.target in SYMINT_ARITHMETIC or node.target is SYM_SIZE:
            args = [self._arg(arg) for arg in node.args]
        else:
            args = [self._arg(arg) for arg in _schema_args(node)]
        out = self._lower_output(node)
        self.refs[node] = out
        self.writer.op(_engine_name(node), *args, out, source=_whereabouts(node).strip())

    def _lower_output(self, node: Node) -> Ref | list[Ref]:
        value = node.meta["val"]
        if isinstance(value, torch.SymInt | int):
            return self.writer.symint(node.name)
        if isinstance(value, tuple | list):
            return [self.writer.tensor(_max_dims(v), _dtype(v), node.name) for v in value]
        return self.writer.tensor(_max_dims(value), _dtype(value), node.name)

    def _arg(self, arg: Any) -> Any:
        if isinstance(arg, Node):
            return self.refs[arg]
        if isinstance(arg, list | tuple):
            return [self._arg(item) for item in arg]
        if isinstance(arg, torch.dtype | torch.device | torch.layout | torch.memory_format):
            return None  # the output's declared dtype says it; the rest has no meaning on the GPU
        return arg


def _dependencies(node: Node) -> Iterable[Node]:
    return [_item_source(node)[0]] if node.target is ITEM else node.all_input_nodes


def _item_source(node: Node) -> tuple[Node, int, int]:
    """The input, dim and index of the element that `x[…].item()` reads."""
    source = node.args[0]
    assert isinstance(source, Node), "item() is called on a tensor"
    if source.target is SELECT:
        tensor, dim, index = source.args
        return tensor, dim, index  # type: ignore[return-value]
    return source, 0, 0


def _mutates(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _mutable_places(node: Node) -> list[int]:
    arguments = node.target._schema.arguments  # type: ignore[union-attr]
    return [
        place
        for place, argument in enumerate(arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def _schema_args(node: Node) -> list[Any]:
    """All arguments in the schema's order, defaults filled in: the engine's calls have no gaps."""
    arguments = node.target._schema.arguments  # type: ignore[union-attr]
    given = dict(zip((argument.name for argument in arguments), node.args, strict=False))
    given.update(node.kwargs)
    return [given.get(argument.name, argument.default_value) for argument in arguments]


def _torch_name(node: Node) -> str:
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return getattr(node.target, "__name__", str(node.target))


def _engine_name(node: Node) -> str:
    if node.target is ITEM:
        return "et_vk.select_as_symint.default"
    if node.target is SYM_SIZE:
        return "sym_size.int"
    if node.target in SYMINT_ARITHMETIC:
        return SYMINT_ARITHMETIC[node.target]
    name = _torch_name(node)
    name = ENGINE_NAMES.get(name, name)
    return COPY_NAMES.get(name, name)


def _is_supported(node: Node) -> bool:
    if node.target is operator.getitem:
        return True
    if node.target is ITEM and _item_source(node)[0].op != "placeholder":
        return False  # only inputs can be read on the host
    return _engine_name(node) in REGISTRY


def _dtype(value: torch.Tensor) -> DType:
    return DTYPE_OF[value.dtype]


def _max_dims(value: torch.Tensor) -> tuple[int, ...]:
    return tuple(
        int(size.node.shape_env.bound_sympy(size.node.expr).upper)
        if isinstance(size, torch.SymInt)
        else size
        for size in value.shape
    )


def _whereabouts(node: Node) -> str:
    """The module path and the source line, as torch recorded them."""
    modules = list((node.meta.get("nn_module_stack") or {}).values())
    path = modules[-1][0] if modules else ""
    lines = (node.meta.get("stack_trace") or "").strip().splitlines()
    source = lines[-1].strip() if lines else ""
    return (f" in {path}" if path else "") + (f": {source}" if source else "")
