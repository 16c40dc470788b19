"""One small device interface, and GPUs behind it in two ways.

In the page a GPU stands on `web/bridge.js`; elsewhere on wgpu-py. The engine and its tests see only
what is exported here.
"""

from py_runtime.base.defaults import CPU, GPU, KINDS
from py_runtime.base.errors import GpuUnavailableError
from py_runtime.base.platform import IN_PAGE
from py_runtime.gpu.interface import OPTIONAL_FEATURES, SUBGROUP_MATRICES, Device
from py_runtime.gpu.objects import (
    PLAN_COLUMNS,
    TENSOR_USAGE,
    UNIFORM_USAGE,
    AdapterInfo,
    BindGroup,
    BindGroupSpec,
    Binding,
    Buffer,
    BufferSpec,
    BufferUsage,
    Copy,
    Counters,
    Dispatch,
    FoundAdapter,
    Pipeline,
    PipelineSpec,
    Plan,
    PlanStep,
    Read,
    Write,
    padded_size,
)

__all__ = [
    "CPU",
    "GPU",
    "KINDS",
    "OPTIONAL_FEATURES",
    "PLAN_COLUMNS",
    "SUBGROUP_MATRICES",
    "TENSOR_USAGE",
    "UNIFORM_USAGE",
    "AdapterInfo",
    "BindGroup",
    "BindGroupSpec",
    "Binding",
    "Buffer",
    "BufferSpec",
    "BufferUsage",
    "Copy",
    "Counters",
    "Device",
    "Dispatch",
    "FoundAdapter",
    "Pipeline",
    "PipelineSpec",
    "Plan",
    "PlanStep",
    "Read",
    "Write",
    "find_adapter",
    "padded_size",
    "request_device",
]


async def find_adapter() -> FoundAdapter:
    """Look at the strongest adapter without opening it; GpuUnavailableError if there is none."""
    if IN_PAGE:
        from py_runtime.gpu.page import find_adapter

        return await find_adapter()
    _require_wgpu()
    from py_runtime.gpu.native import find_adapter as find

    return await find()


async def request_device() -> Device:
    """Open the strongest adapter with its own limits and the optional features it has."""
    if IN_PAGE:
        from py_runtime.gpu.page import request_device

        return await request_device()
    _require_wgpu()
    from py_runtime.gpu.native import request_device as request

    return await request()


def _require_wgpu() -> None:
    """Raise GpuUnavailableError where wgpu-py is not installed, or finds no library of its own."""
    try:
        import wgpu.backends.wgpu_native  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        raise GpuUnavailableError(f"no GPU adapter, since wgpu cannot be used: {error}") from error
