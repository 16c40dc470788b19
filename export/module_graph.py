"""A module's graph while the passes work on it: pure calls, with the buffers it writes at the end.

Each node's `meta["val"]` holds what torch's fake tensors say of it (dims, dtype, live scalars): a
pass can ask for shapes and never needs data.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.fx.node import map_arg

from export.errors import ExportError


class ModuleGraph:
    """A graph whose output node holds the `updated` buffers, then the module's own outputs."""

    def __init__(self, exported: ExportedProgram) -> None:
        self.graph: Graph = exported.graph
        self.inputs: list[Node] = []
        self.tensors: dict[Node, Tensor] = {}  # parameters, buffers, constants
        self.names: dict[Node, str] = {}  # of these
        self.updated: list[Node] = []  # buffers that get a new value, in the order of the outputs
        self._take_placeholders(exported)
        self._take_updates(exported)
        self.remove_unused()  # assertions on sizes are the engine's job

    def _take_placeholders(self, exported: ExportedProgram) -> None:
        by_name = {node.name: node for node in self.graph.nodes if node.op == "placeholder"}
        for spec in exported.graph_signature.input_specs:
            node = by_name[spec.arg.name]
            if spec.kind == InputKind.USER_INPUT:
                self.inputs.append(node)
                continue
            name = str(spec.target)
            found = exported.state_dict.get(name)
            tensor = exported.constants[name] if found is None else found
            self.tensors[node], self.names[node] = tensor.detach(), name

    def _take_updates(self, exported: ExportedProgram) -> None:
        by_name = {name: node for node, name in self.names.items()}
        for spec in exported.graph_signature.output_specs:
            if spec.kind == OutputKind.BUFFER_MUTATION:
                self.updated.append(by_name[str(spec.target)])
            elif spec.kind != OutputKind.USER_OUTPUT:
                raise ExportError(
                    f"the module writes into {spec.target} in place, which is not a buffer of its "
                    "own; work on a clone() of it, or register it with register_buffer"
                )

    # Looking -----------------------------------------------------------------------------------

    @property
    def output_node(self) -> Node:
        return next(iter(reversed(self.graph.nodes)))

    @property
    def outputs(self) -> list[Any]:
        """The module's own outputs."""
        return list(self.output_node.args[0])[len(self.updated) :]

    def updates(self) -> list[tuple[Node, Node]]:
        """Each buffer that gets a new value, and that value."""
        values = list(self.output_node.args[0])[: len(self.updated)]
        return list(zip(self.updated, values, strict=True))

    def calls(self, *targets: Any) -> list[Node]:
        """Return the calls of these ops, or all calls, in order; the graph may change meanwhile."""
        return [
            node
            for node in self.graph.nodes
            if node.op == "call_function" and (not targets or node.target in targets)
        ]

    def is_constant(self, node: Any) -> bool:
        """Return whether the node is a parameter, buffer or constant that keeps its value."""
        is_kept = node in self.tensors and node not in self.updated
        return is_kept and not any(mutates(user) for user in node.users)

    # Changing ----------------------------------------------------------------------------------

    @contextmanager
    def before(self, node: Node) -> Iterator[Callable[..., Node]]:
        """Yield `emit(op, *args)`, which adds a call before the node, with its source line."""

        def emit(target: Callable[..., Any], *args: Any, **options: Any) -> Node:
            added = self.graph.call_function(target, args, options)
            added.meta = {key: node.meta[key] for key in SOURCE_KEYS if key in node.meta}
            values = map_arg(args, lambda needed: needed.meta["val"])
            with self._fake_mode(), torch.no_grad():
                added.meta["val"] = target(*values, **options)
            return added

        with self.graph.inserting_before(node):
            yield emit

    def _fake_mode(self) -> Any:
        for node in (*self.inputs, *self.tensors):
            if isinstance(node.meta["val"], Tensor):
                return node.meta["val"].fake_mode
        return torch._subclasses.FakeTensorMode()

    def replace(self, old: Node, new: Node) -> None:
        old.replace_all_uses_with(new)
        self.graph.erase_node(old)

    def add_constant(self, name: str, tensor: Tensor) -> Node:
        """Add a constant to the graph; a name that is taken gets a number."""
        taken, number, wanted = set(self.names.values()), 1, name
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        with self.graph.inserting_before(next(iter(self.graph.nodes))):
            node = self.graph.placeholder(name.replace(".", "_"))
        self.names[node] = name
        self.set_tensor(node, tensor)
        return node

    def set_tensor(self, node: Node, tensor: Tensor) -> None:
        """Replace a parameter, buffer or constant by the same one in another layout."""
        node.meta["val"] = self._fake_mode().from_tensor(tensor, static_shapes=True)
        self.tensors[node] = tensor

    def drop_update(self, buffer: Node) -> None:
        """Stop updating this buffer at the end: an op writes it in place."""
        place = self.updated.index(buffer)
        values = list(self.output_node.args[0])
        del values[place], self.updated[place]
        self.output_node.args = (tuple(values),)

    def sort(self) -> None:
        """Every call after what it needs; otherwise the order stays, as people wrote it."""
        placed: set[Node] = set()
        order: list[Node] = []

        def place(node: Node) -> None:
            if node not in placed:
                placed.add(node)
                for needed in node.all_input_nodes:
                    place(needed)
                order.append(node)

        for node in self.graph.nodes:
            place(node)
        end = self.output_node
        for node in order[:-1]:
            end.prepend(node)

    def remove_unused(self) -> None:
        """Remove calls that nothing uses, except writes in place, and unused constants."""
        for node in reversed(list(self.graph.nodes)):
            if node.users or node.op == "output" or node in self.inputs or mutates(node):
                continue
            self.tensors.pop(node, None)
            self.names.pop(node, None)
            self.graph.erase_node(node)


SOURCE_KEYS = ("stack_trace", "nn_module_stack")


def mutates(node: Node) -> bool:
    """Return whether the call writes into one of its arguments."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def is_random(node: Node) -> bool:
    """Return whether two equal calls may return different results."""
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags


def shape_of(node: Node) -> tuple[Any, ...]:
    """Dims, each an int or a SymInt."""
    return tuple(node.meta["val"].shape)


def same_size(a: Any, b: Any) -> bool:
    """Return whether two sizes are equal whatever the live sizes are."""
    return bool(statically_known_true(a == b))


def same_shape(a: Any, b: Any) -> bool:
    """Return whether two shapes are equal, also where sizes are symbols; see same_size."""
    return len(a) == len(b) and all(map(same_size, a, b))
