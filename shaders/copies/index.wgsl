// out = x with up to three of its axes looked up in index tensors, along a walk over the output's
// axes. An index below 0 counts from the end; all are clamped.
// needs: shared/walk

struct Params {
  steps: array<vec4u, MOST_AXES>,  // for x, first, second and third
  sizes: array<vec4u, MOST_AXES / 4u>,
  indexed_sizes: vec4i,  // of the axes of x that are looked up; 1 where unused
  indexed_strides: vec4u,  // 0 where unused
  rank: u32,
  count: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> first: array<i32>;
@group(0) @binding(2) var<storage, read> second: array<i32>;
@group(0) @binding(3) var<storage, read> third: array<i32>;
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
@group(0) @binding(5) var<uniform> params: Params;

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
  let given = vec3i(first[at.y], second[at.z], third[at.w]);
  let sizes = params.indexed_sizes.xyz;
  let wrapped = select(given, given + sizes, given < vec3i(0));
  let found = vec3u(clamp(wrapped, vec3i(0), sizes - 1));
  out[index] = x[at.x + dot(found, params.indexed_strides.xyz)];
}
