"""Products of bytes that SwiftShader compiles in time.

A GPU has an instruction for dot4I8Packed. SwiftShader imitates it so lengthily that its compiler
takes seven times as long for a large kernel as where the kernel does the same by shifts. In the
page one of Dawn's switches writes them out (tools/browser.py), natively and in Firefox this does.
The numbers are the same: they are whole. What the built-in itself computes is in
gpu/test_byte_products.py.
"""

from collections.abc import Sequence
from dataclasses import replace

from py_runtime.gpu import Device, Pipeline, PipelineSpec

BUILT_IN, WRITTEN_OUT = "dot4I8Packed(", "written_out_dot("
FUNCTIONS = """
fn written_out_bytes(word: u32) -> vec4i {
  return vec4i(vec4u(word) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u);
}

fn written_out_dot(a: u32, b: u32) -> i32 {
  return dot(written_out_bytes(a), written_out_bytes(b));
}
"""


def write_out_byte_products(device: Device) -> None:
    """In all kernels that the device compiles from now on."""
    create = device.create_compute_pipelines

    async def create_written_out(specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        return await create([written_out(spec) for spec in specs])

    setattr(device, create.__name__, create_written_out)


def written_out(spec: PipelineSpec) -> PipelineSpec:
    """The same kernel without the built-in."""
    if BUILT_IN not in spec.source:
        return spec
    return replace(spec, source=spec.source.replace(BUILT_IN, WRITTEN_OUT) + FUNCTIONS)
