"""A running model, seen, measured, changed and steered: `from inpage import glass`.

line = await glass.timeline(model, tokens=1, context=128)
line.save("trace.json")
"""

from importlib import import_module
from typing import Any

# Imported when they are asked for. docs/glass.md explains them.
PLACES = {
    # The engine room.
    "timeline": "py_runtime.glass.timeline",
    "graph_view": "py_runtime.glass.graph_view",
    "op_view": "py_runtime.glass.graph_view",
    "values_of": "py_runtime.glass.graph_view",
    "memory_view": "py_runtime.glass.memory_view",
    "kernel_lab": "py_runtime.glass.kernel_lab",
    "replace": "py_runtime.glass.own_ops",
    "own_op": "py_runtime.glass.own_ops",
    "kernel_of": "py_runtime.glass.own_ops",
    "Op": "py_runtime.ops.registry",
}

__all__ = list(PLACES)


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module 'inpage.glass' has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(PLACES)
