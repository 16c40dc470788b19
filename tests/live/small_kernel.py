"""A kernel that is nothing but its parameters."""

from py_runtime.gpu.kernel_sources import KernelSource
from py_runtime.gpu.shader_sources import parse


def kernel_with(params: str) -> KernelSource:
    source = f"// needs: nothing\nconst ROWS = 2;\n{params}\n"
    file = parse("toy", source)
    return KernelSource("toy", file, (file,), source, (), {})
