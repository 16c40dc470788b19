"""Stock ExecuTorch files: a .pte that was exported for the Vulkan/WebGPU delegate, read and run."""

from py_runtime.pte.errors import PteError, UnsupportedPteError
from py_runtime.pte.load import load
from py_runtime.pte.methods import Method, PteProgram
from py_runtime.pte.module import PteModule
from py_runtime.pte.reader import inspect_pte, open_pte

__all__ = [
    "Method",
    "PteError",
    "PteModule",
    "PteProgram",
    "UnsupportedPteError",
    "inspect_pte",
    "load",
    "open_pte",
]
