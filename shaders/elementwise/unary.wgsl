// out = apply(x), element by element; a fragment says how.
// Elements travel as 32 bits: what goes in and what comes out may differ in type.
// needs: elements = elementwise/fragments/unary_*

struct Params {
  count: u32,
  first: u32,  // what the function takes beside x, as bits
  second: u32,
}

override CODE: u32;

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

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
  out[index] = apply(x[index]);
}
