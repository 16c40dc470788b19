// Sum, maximum or minimum along the middle of x: [outer, width, inner] into out: [outer, parts,
// inner]. One invocation a part, which takes every parts-th element: neighbours read neighbours.
// needs: element = reduce/fragments/element_*

struct Params {
  count: u32,  // outer * parts * inner
  width: u32,
  inner: u32,
  parts: u32,  // at most width
  scale: f32,
}

override CODE: u32;
const SUM = 0u;
const MAXIMUM = 1u;
const MINIMUM = 2u;

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<Element>;
@group(0) @binding(1) var<storage, read_write> out: array<Element>;
@group(0) @binding(2) var<uniform> params: Params;

fn join(a: Element, b: Element) -> Element {
  switch CODE {
    case SUM: { return a + b; }
    case MAXIMUM: { return max(a, b); }
    case MINIMUM, default: { return min(a, b); }
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (index >= params.count) {
    return;
  }
  let row = index / params.inner;
  let part = row % params.parts;
  let outer = row / params.parts;
  let step = params.parts * params.inner;
  var at = (outer * params.width + part) * params.inner + index % params.inner;
  var result = x[at];
  at += step;
  var left = (params.width - part - 1u) / params.parts;
  for (; left >= 4u; left -= 4u) {
    let pair = join(x[at], x[at + step]);
    let next = join(x[at + 2u * step], x[at + 3u * step]);
    result = join(result, join(pair, next));
    at += 4u * step;
  }
  for (; left > 0u; left--) {
    result = join(result, x[at]);
    at += step;
  }
  out[index] = scaled(result, params.scale);
}
