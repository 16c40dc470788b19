// out = condition ? a : b with broadcasting, along a walk over the output's axes (see
// py_runtime/ops/kernels/strided.py). Pure movement of 32-bit elements.

struct Params {
  sizes_low: vec4u,
  sizes_high: vec4u,
  condition_low: vec4u,
  condition_high: vec4u,
  a_low: vec4u,
  a_high: vec4u,
  b_low: vec4u,
  b_high: vec4u,
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
  var rest = index;
  var condition_at = index * params.condition_low.x;
  var a_at = index * params.a_low.x;
  var b_at = index * params.b_low.x;
  for (var axis = 1u; axis < params.rank; axis++) {
    let low = axis < 4u;
    let at = axis & 3u;
    rest /= select(params.sizes_high[at], params.sizes_low[at], low);
    condition_at += rest * select(params.condition_high[at], params.condition_low[at], low);
    a_at += rest * select(params.a_high[at], params.a_low[at], low);
    b_at += rest * select(params.b_high[at], params.b_low[at], low);
  }
  out[index] = select(b[b_at], a[a_at], condition[condition_at] != 0u);
}
