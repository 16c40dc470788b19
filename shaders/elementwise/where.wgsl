// out = condition ? a : b with broadcasting, along a walk over the output's axes. Pure
// movement of 32-bit elements.
// needs: shared/walk

struct Params {
  steps: array<vec4u, MOST_AXES>,  // for condition, a and b
  sizes: array<vec4u, MOST_AXES / 4u>,
  rank: u32,
  count: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> condition: array<u32>;
@group(0) @binding(1) var<storage, read> a: array<u32>;
@group(0) @binding(2) var<storage, read> b: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

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
  let at = walk(index);
  out[index] = select(b[at.z], a[at.y], condition[at.x] != 0u);
}
