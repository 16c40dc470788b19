// out = x with up to three of its axes looked up in index tensors, along a walk over the output's
// axes (see py_runtime/ops/kernels/strided.py). An index below 0 counts from the end; all are clamped.

struct Params {
  sizes_low: vec4u,
  sizes_high: vec4u,
  x_low: vec4u,
  x_high: vec4u,
  first_low: vec4u,
  first_high: vec4u,
  second_low: vec4u,
  second_high: vec4u,
  third_low: vec4u,
  third_high: vec4u,
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
  var rest = index;
  var x_at = index * params.x_low.x;
  var first_at = index * params.first_low.x;
  var second_at = index * params.second_low.x;
  var third_at = index * params.third_low.x;
  for (var axis = 1u; axis < params.rank; axis++) {
    let low = axis < 4u;
    let at = axis & 3u;
    rest /= select(params.sizes_high[at], params.sizes_low[at], low);
    x_at += rest * select(params.x_high[at], params.x_low[at], low);
    first_at += rest * select(params.first_high[at], params.first_low[at], low);
    second_at += rest * select(params.second_high[at], params.second_low[at], low);
    third_at += rest * select(params.third_high[at], params.third_low[at], low);
  }
  let given = vec3i(first[first_at], second[second_at], third[third_at]);
  let sizes = params.indexed_sizes.xyz;
  let wrapped = select(given, given + sizes, given < vec3i(0));
  let found = vec3u(clamp(wrapped, vec3i(0), sizes - 1));
  out[index] = x[x_at + dot(found, params.indexed_strides.xyz)];
}
