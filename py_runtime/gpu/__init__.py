"""One small GPU device interface, two implementations, chosen at import.

In the page it stands on `web/bridge.js`; elsewhere on wgpu-py. The engine and its tests see only
what is exported here.
"""

from py_runtime.base.platform import IN_PAGE
from py_runtime.gpu.interface import OPTIONAL_FEATURES, Device
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
    Pipeline,
    PipelineSpec,
    Plan,
    PlanStep,
    Read,
    Write,
    padded_size,
)

if IN_PAGE:
    from py_runtime.gpu.page import request_device
else:
    from py_runtime.gpu.native import request_device

__all__ = [
    "OPTIONAL_FEATURES",
    "PLAN_COLUMNS",
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
    "Pipeline",
    "PipelineSpec",
    "Plan",
    "PlanStep",
    "Read",
    "Write",
    "padded_size",
    "request_device",
]
