// out = combine(a, b) with broadcasting, along a walk over the output's axes; a fragment says how.
// Elements travel as 32 bits. A scalar in b's place comes as a parameter.
// needs: shared/walk, operands = elementwise/fragments/binary_*

struct Params {
  steps: array<vec4u, MOST_AXES>,  // for a and b
  sizes: array<vec4u, MOST_AXES / 4u>,
  rank: u32,
  count: u32,
  alpha: u32,  // of add: a + alpha * b
  b_is_scalar: u32,
  b_scalar: u32,
}

override CODE: u32;

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
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
  let at = walk(index);
  out[index] = combine(a[at.x], select(b[at.y], params.b_scalar, params.b_is_scalar == 1u));
}
