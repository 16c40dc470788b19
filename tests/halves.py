"""Kernels in halves on adapters that lack shader-f16, as floats that are rounded at each step.

Software adapters have no halves. Of such a kernel's text only what names halves is replaced here,
so that everything else in it is tried: layout, scales, sums, and how far all results are off.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from py_runtime.gpu import Device, Pipeline, PipelineSpec
from py_runtime.gpu.kernel_target import HAS_HALVES

DIRECTIVE = "enable f16;"
CREATE = Device.create_compute_pipelines.__name__
IN_FLOATS = {
    DIRECTIVE: "",
    "bitcast<vec2h>(": "unpack2x16float(",
    "bitcast<u32>(halves)": "pack2x16float(halves)",
    "vec2h": "vec2f",
    " fma(": " rounded_fma(",
}
ROUNDED = """
fn rounded_fma(a: vec2f, b: vec2f, c: vec2f) -> vec2f {
  return unpack2x16float(pack2x16float(fma(a, b, c)));
}
"""


def by_floats(spec: PipelineSpec) -> PipelineSpec:
    """Return the same kernel, in floats where it is in halves."""
    if DIRECTIVE not in spec.source:
        return spec
    source = spec.source
    for halves, floats in IN_FLOATS.items():
        source = source.replace(halves, floats)
    return replace(spec, source=source + ROUNDED)


@contextmanager
def having_halves(device: Device) -> Iterator[Device]:
    """Let a device have shader-f16 for a while."""
    features, create = device.features, device.create_compute_pipelines

    async def create_by_floats(specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        return await create([by_floats(spec) for spec in specs])

    device.features = features | {HAS_HALVES}
    setattr(device, CREATE, create_by_floats)
    try:
        yield device
    finally:
        device.features = features
        setattr(device, CREATE, create)
