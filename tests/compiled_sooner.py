"""Kernels of graphics cards that SwiftShader compiles sooner, for tests that compile hundreds.

A card has an instruction for dot4I8Packed. SwiftShader imitates it so lengthily that its compiler
takes up to seven times as long for a large kernel as where the kernel does the same by shifts. In
the page one of Dawn's switches writes them out (tools/browser.py), elsewhere this does.

linear/fragments/tiles_by_blocks has its eight tokens one after the other: a card is up to a third
slower where they take turns in a loop, but SwiftShader compiles a loop in a fifth of the time.

Numbers stay as they are, bit for bit. What users have is in gpu/test_compiled_sooner.py,
ops/test_int8_products.py and wherever a model runs in a page.
"""

import re
from collections.abc import Callable, Sequence
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
ONE_BY_ONE = re.compile(
    r"( *(upper|lower)\[\d\] \+= block_dots\(rows, token_at\(k_split, .*\)\);\n){8}"
)
# Whichever token's turn it is has its sums in front; after eight all are where they were.
IN_TURNS = """
    for (var at = 0u; at < 8u; at++) {
      let sums = upper[0] + block_dots(rows, token_at(k_split, down + at * DOWN));
      upper = mat4x4f(upper[1], upper[2], upper[3], lower[0]);
      lower = mat4x4f(lower[1], lower[2], lower[3], sums);
    }
"""


def written_out(spec: PipelineSpec) -> PipelineSpec:
    """Return the same kernel without the built-in."""
    if BUILT_IN not in spec.source:
        return spec
    return replace(spec, source=spec.source.replace(BUILT_IN, WRITTEN_OUT) + FUNCTIONS)


def sooner(spec: PipelineSpec) -> PipelineSpec:
    """Return the kernel without the built-in, and with eight tokens that take turns."""
    return written_out(replace(spec, source=ONE_BY_ONE.sub(IN_TURNS, spec.source)))


def compile_sooner(
    device: Device, rewrite: Callable[[PipelineSpec], PipelineSpec] = sooner
) -> None:
    """Rewrite all kernels that the device compiles later."""
    create = device.create_compute_pipelines

    async def create_sooner(specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        return await create([rewrite(spec) for spec in specs])

    setattr(device, create.__name__, create_sooner)
