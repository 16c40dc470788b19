"""The compiled kernels for the CPU, and the numbers by which they know names.

`tools/cpu_kernels.py` writes the modules and the table; the names are those of the shaders.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from py_runtime.base.errors import GpuUnavailableError, GraphError
from py_runtime.gpu.kernel_sources import KernelSource

KERNELS_FOLDER = Path(__file__).parent / "kernels"
MODULES = ("kernels.wasm", "kernels_relaxed.wasm")  # the second needs relaxed SIMD
TABLE = "kernels.json"
_OVERRIDE = re.compile(r"^override (\w+): (\w+)(?: = ([^;]+))?;", re.MULTILINE)


@dataclass(frozen=True)
class KernelTable:
    """The numbers of names in the compiled modules."""

    bindings: Mapping[str, int]  # buffers
    constants: Mapping[str, int]
    slots: Mapping[str, int]
    kernels: Mapping[str, int]
    fragments: Mapping[str, int]


@cache
def kernel_table() -> KernelTable:
    """Read the table once."""
    names: dict[str, list[str]] = json.loads(_read(TABLE))
    return KernelTable(
        **{key: {name: at for at, name in enumerate(column)} for key, column in names.items()}
    )


@cache
def module_code(name: str) -> bytes:
    """Read one of the modules once."""
    return _read(name)


def _read(name: str) -> bytes:
    try:
        return (KERNELS_FOLDER / name).read_bytes()
    except FileNotFoundError:
        raise GpuUnavailableError(
            f"the kernels for the CPU are not compiled here ({KERNELS_FOLDER} has no {name}); in a "
            "checkout, run: make setup"
        ) from None


def kernel_number(name: str) -> int:
    """Return the number of a kernel; GraphError if it was not written for the CPU."""
    try:
        return kernel_table().kernels[name]
    except KeyError:
        raise GraphError(f"the kernel '{name}' does not exist for the CPU") from None


def plugged_fragments(kernel: KernelSource) -> dict[int, int]:
    """Return the number of the fragment in each slot of a joined kernel.

    Slots that do not matter on the CPU, such as how invocations share loads, are left out.
    """
    table = kernel_table()
    found = {}
    for file in kernel.files:
        for slot, start in file.slots.items():
            fragment = start + kernel.plugs[slot]
            if fragment in table.fragments:
                found[table.slots[slot]] = table.fragments[fragment]
    return found


def constant_bits(kernel: KernelSource, given: Mapping[str, float]) -> np.ndarray:
    """Return all constants of a joined kernel as bits: u32 [constants]."""
    table = kernel_table()
    declared = [found for file in kernel.files for found in _OVERRIDE.findall(file.source)]
    unknown = given.keys() - {name for name, _, _ in declared}
    if unknown:  # as WebGPU refuses them
        raise GraphError(f"shader '{kernel.label}' has no constant {', '.join(sorted(unknown))}")
    figures = kernel.figures(given)
    bits = np.zeros(len(table.constants), np.uint32)
    for name, kind, default in declared:
        if kind == "f32":
            value = given[name] if name in given else float(default or 0)
            bits[table.constants[name]] = np.float32(value).view(np.uint32)
        else:
            bits[table.constants[name]] = int(given.get(name, figures.get(name, 0)))
    return bits
