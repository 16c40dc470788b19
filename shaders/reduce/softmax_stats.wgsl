// For long rows: the largest element, and the sum of exp(element - largest), of each part of a row.
// x: [outer, width, inner]; stats: [outer, parts, inner]. One invocation a part, which takes every
// parts-th element. A second pass makes one pair of the pairs that the parts gave.
// needs: nothing

struct Params {
  count: u32,  // outer * parts * inner
  width: u32,
  inner: u32,
  parts: u32,  // at most width
}

override SECOND_PASS: u32;

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> stats: array<vec2f>;
@group(0) @binding(2) var<uniform> params: Params;

fn load(at: u32) -> vec2f {
  if (SECOND_PASS == 1u) {
    return vec2f(x[2u * at], x[2u * at + 1u]);
  }
  return vec2f(x[at], 1.0);
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
  let first = (outer * params.width + part) * params.inner + index % params.inner;
  let end = first + ((params.width - part - 1u) / params.parts + 1u) * step;
  var largest = load(first).x;
  for (var at = first; at < end; at += step) {
    largest = max(largest, load(at).x);
  }
  var sum = 0.0;
  for (var at = first; at < end; at += step) {
    let pair = load(at);
    sum += pair.y * exp(pair.x - largest);
  }
  stats[index] = vec2f(largest, sum);
}
