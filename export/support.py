"""The ops of a torch graph that the engine takes, and a message that lists all the others."""

import operator
import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

import py_runtime.ops  # noqa: F401  (fills the registry)
from export.errors import ExportError, UnsupportedOpsError
from export.torch_ops import ENGINE_NAMES
from py_runtime.base.dtypes import BOOL, F16, F32, I8, I32, I64, U8
from py_runtime.ops.registry import REGISTRY

aten = torch.ops.aten
DTYPE_OF = {
    torch.float32: F32,
    torch.float16: F16,
    torch.int64: I64,
    torch.int32: I32,
    torch.int8: I8,
    torch.uint8: U8,
    torch.bool: BOOL,
}
COMPUTED_DTYPES = (torch.float32, torch.int64, torch.int32, torch.bool)  # the others are packed
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
ITEM = (aten.item.default, aten._local_scalar_dense.default)
READ_ON_HOST = " – as a live scalar, only one element of an input of rank 1 or more can be read"
HINTS: dict[Any, str] = dict.fromkeys(ITEM, READ_ON_HOST)
FRAME = re.compile(r'File "(.+?)", line (\d+), in .+\n(.+)')
DATA_DEPENDENT = (aten.nonzero.default, aten.masked_select.default, aten._unique2.default)


def engine_name(node: Node) -> str:
    """Return the engine's name for what a node calls."""
    if node.target in ITEM:
        return "et_vk.select_as_symint.default"
    if node.target is aten.sym_size.int:
        return "sym_size.int"
    if node.target in SYMINT_ARITHMETIC:
        return SYMINT_ARITHMETIC[node.target]
    name = ENGINE_NAMES.get(torch_name(node), torch_name(node))
    return COPY_NAMES.get(name, name)


def torch_name(node: Node) -> str:
    """Return torch's name for what a node calls, for messages."""
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return getattr(node.target, "__name__", str(node.target))


def whereabouts(node: Node) -> str:
    """Return ` in module.path: code (file.py:12)` as torch recorded it.

    "" for its own additions.
    """
    modules = list((node.meta.get("nn_module_stack") or {}).values())
    path = modules[-1][0] if modules else ""
    if path.startswith("_empty_nn_module_stack"):
        return ""
    return (f" in {path}" if path else "") + _source_line(node.meta.get("stack_trace") or "")


def _source_line(stack: str) -> str:
    """Return the innermost line of the recorded stack that is not torch's own, if there is one."""
    frames = FRAME.findall(stack)
    own = [frame for frame in frames if "torch" not in PurePath(frame[0]).parts] or frames
    if not own:
        return ""
    file, number, code = own[-1]
    return f": {code.strip()} ({PurePath(file).name}:{number})"


# Live scalars ----------------------------------------------------------------------------------


def item_source(node: Node) -> tuple[Node, int, int]:
    """Return the tensor, dim and index that `x[…].item()` reads: [0, …, index, …, 0]."""
    places: list[tuple[int, int]] = []  # dims of the tensor, outermost select first
    source: Any = node.args[0]
    chain = []
    while source.target is aten.select.int:
        chain.append(source)
        source = source.args[0]
    left = list(range(source.meta["val"].dim()))
    for select in reversed(chain):
        _, dim, index = select.args
        places.append((left.pop(dim), index))
    others = [place for place in places if place[1] != 0]
    is_one = all(source.meta["val"].shape[dim] == 1 for dim in left)
    if not is_one or len(others) > 1 or not source.meta["val"].dim():
        return node, 0, 0  # no such element: reported as unsupported
    dim, index = others[0] if others else (0, 0)
    return source, dim, index


def is_supported(node: Node) -> bool:
    """Return whether the engine has the op, in the form that the node calls."""
    if node.target is operator.getitem:
        return True
    if node.target in ITEM:
        return item_source(node)[0].op == "placeholder"  # only inputs can be read on the host
    return engine_name(node) in REGISTRY


# Refusals --------------------------------------------------------------------------------------


def refuse_unsupported(nodes: Iterable[Node]) -> None:
    """ExportError, which lists every op that is missing and where it is called."""
    calls = [node for node in nodes if node.op == "call_function"]
    for node in calls:
        if any(value.dtype.is_complex for value in _tensors(node)):
            raise ExportError(
                f"complex numbers{whereabouts(node)}: the engine has real ones only; write "
                "rotations with cos and sin"
            )
        if _has_shape_of_data(node):
            raise ExportError(
                f"{torch_name(node)}{whereabouts(node)}: how large its result is depends on data; "
                "keep the shape and choose elements with torch.where or masked_fill"
            )
    faults = [
        f"{torch_name(node)}{whereabouts(node)}{HINTS.get(node.target, '')}"
        for node in calls
        if not is_supported(node)
    ]
    faults += [
        f"{torch_name(node)}{whereabouts(node)} gives {value.dtype}; the engine computes in "
        "float32, so export module.float()"
        for node in calls
        for value in _tensors(node)
        if is_supported(node) and value.dtype not in COMPUTED_DTYPES
    ]
    if faults:
        raise UnsupportedOpsError(list(dict.fromkeys(faults)))


def _has_shape_of_data(node: Node) -> bool:
    """Return whether its data decide how many elements it picks: nonzero and its kin, x[mask]."""
    if node.target is aten.index.Tensor:
        indices: Any = node.args[1]
        return any(index is not None and index.meta["val"].dtype == torch.bool for index in indices)
    return node.target in DATA_DEPENDENT


def _tensors(node: Node) -> list[Tensor]:
    value = node.meta["val"]
    values = value if isinstance(value, tuple | list) else [value]
    return [each for each in values if isinstance(each, Tensor)]
