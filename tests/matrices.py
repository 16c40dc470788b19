"""Matrix units on adapters that have none, as plain WGSL of the same kernels.

Of such a kernel's text only what names matrices is replaced here, so that everything else in it is
tried: which rows and columns meet, layout, scales, and how far all results are off. An invocation
keeps eight of a matrix's sums, and reads both factors where they lie, as halves.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from py_runtime import ops  # noqa: F401  (before tilings, which ops import)
from py_runtime.gpu import Device, Pipeline, PipelineSpec, kernel_target
from py_runtime.ops.kernels import tilings

DIRECTIVE = "enable chromium_experimental_subgroup_matrix;"
CREATE = Device.create_compute_pipelines.__name__
IN_WORDS = {
    r"^enable \w+;": "",
    r"^alias (\w+) = subgroup_matrix_(left|right)\b.*;": r"alias \1 = Placed;",
    r"^alias (\w+) = subgroup_matrix_result\b.*;": r"alias \1 = Shared;",
    r"subgroupMatrixLoad<\w+, \w+>\(&tiles, ": "Placed(",
    r"subgroupMatrixMultiplyAccumulate\(": "with_product(",
    r"subgroupMatrixStore<row_major>\(&tiles, ": "lay_down(",
    r"  @builtin\(subgroup_id\) subgroup: u32,\n": "",
    r"  @builtin\(subgroup_invocation_id\) member: u32,\n": "",
    r"^(fn main\([^{]*\{)": r"\1\n  let subgroup = lane / LANES;\n  member = lane % LANES;",
}
IN_PLAIN_WGSL = """
const OWN_SUMS = 8u;
var<private> member: u32;

struct Placed {
  first: u32,
  stride: u32,
}

struct Shared {
  sums: array<f32, OWN_SUMS>,
}

fn with_product(left: Placed, right: Placed, sums: Shared) -> Shared {
  let row = member * OWN_SUMS / UNIT_SIDE;
  var found = sums;
  for (var at = 0u; at < OWN_SUMS; at++) {
    let column = member * OWN_SUMS % UNIT_SIDE + at;
    var sum = found.sums[at];
    for (var vector = 0u; vector < UNIT_VECTORS; vector++) {
      let a = tiles[left.first + row * left.stride + vector];
      let b = tiles[right.first + column * right.stride + vector];
      for (var word = 0u; word < 4u; word++) {
        sum += dot(unpack2x16float(a[word]), unpack2x16float(b[word]));
      }
    }
    found.sums[at] = sum;
  }
  return found;
}

fn lay_down(first: u32, given: Shared, stride: u32) {
  let row = member * OWN_SUMS / UNIT_SIDE;
  let at = first + row * stride + member * OWN_SUMS % UNIT_SIDE / 4u;
  var sums = given.sums;
  tiles[at] = bitcast<vec4u>(vec4f(sums[0], sums[1], sums[2], sums[3]));
  tiles[at + 1u] = bitcast<vec4u>(vec4f(sums[4], sums[5], sums[6], sums[7]));
}
"""


def in_plain_wgsl(spec: PipelineSpec) -> PipelineSpec:
    """Return the same kernel, with sums of products where it has matrices."""
    if DIRECTIVE not in spec.source:
        return spec
    source = spec.source
    for named, plain in IN_WORDS.items():
        source, count = re.subn(named, plain, source, flags=re.MULTILINE)
        assert count, f"{spec.label} has nothing like {named}"
    return replace(spec, source=source + IN_PLAIN_WGSL)


@contextmanager
def having_matrices(device: Device, sides: Sequence[int] = (64,)) -> Iterator[Device]:
    """Let a device have matrix units for a while, with tiles of these sides.

    Software takes ten seconds to compile a large tile.
    """
    create = device.create_compute_pipelines

    async def create_plain(specs: Sequence[PipelineSpec]) -> list[Pipeline]:
        return await create([in_plain_wgsl(spec) for spec in specs])

    setattr(device, CREATE, create_plain)
    tiles = tuple(tiling for tiling in tilings.UNITS if tiling.tokens in sides)
    try:
        with (
            patch.object(kernel_target, "has_matrices", lambda given: given is device),
            patch.object(tilings, "UNITS", tiles),
        ):
            yield device
    finally:
        setattr(device, CREATE, create)
