// Where the largest (or smallest) element along the middle of x: [outer, width, inner] stands, the
// first one on ties, into out: [outer, parts, inner]. One invocation a part, which takes every
// parts-th element. A second pass chooses among the places that the parts found.
// needs: element = reduce/fragments/element_*

struct Params {
  count: u32,  // outer * parts * inner
  width: u32,
  inner: u32,
  parts: u32,  // at most width
  given: u32,  // found places per row, in the second pass
}

override IS_MIN: u32;
override SECOND_PASS: u32;

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<Element>;
@group(0) @binding(1) var<storage, read> found: array<u32>;  // [outer, given, inner]
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

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
  let inner_at = index % params.inner;
  let row = index / params.inner;
  let part = row % params.parts;
  let outer = row / params.parts;
  var rounds = (params.width - part - 1u) / params.parts + 1u;
  if (SECOND_PASS == 1u) {
    rounds = params.given;
  }
  var best_place = 0u;
  var best = Element(0);
  for (var round = 0u; round < rounds; round++) {
    var place = part + round * params.parts;
    if (SECOND_PASS == 1u) {
      let at = (outer * params.given + round) * params.inner + inner_at;
      place = min(found[at], params.width - 1u);
    }
    let value = x[(outer * params.width + place) * params.inner + inner_at];
    let is_better = select(value > best, value < best, IS_MIN == 1u);
    if (round == 0u || is_better || (value == best && place < best_place)) {
      best = value;
      best_place = place;
    }
  }
  out[index] = best_place;
}
