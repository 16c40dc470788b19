"""The CPU as a device: kernels in WebAssembly that take what the shaders take."""

from py_runtime.base.errors import GpuUnavailableError
from py_runtime.base.platform import IN_PAGE
from py_runtime.cpu.device import CpuDevice


async def request_cpu(threads: int | None = None) -> CpuDevice:
    """Open the CPU with so many threads, or as many as leave the machine usable."""
    if IN_PAGE:
        from py_runtime.cpu.page import request_cpu

        return await request_cpu(threads)
    try:
        from py_runtime.cpu.native import request_cpu as request
    except ImportError as error:
        raise GpuUnavailableError(
            f"{error.name} is missing, which runs the CPU's kernels: pip install 'inpage[native]'"
        ) from error
    return await request(threads)
