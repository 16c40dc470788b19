// out[target] = x[source] along a walk over up to eight axes (see py_runtime/ops/kernels/strided.py).
// Pure movement of 32-bit elements. `start` is a live position along one axis of x.

struct Params {
  sizes_low: vec4u,
  sizes_high: vec4u,
  source_low: vec4u,
  source_high: vec4u,
  target_low: vec4u,
  target_high: vec4u,
  rank: u32,
  count: u32,
  source_at: u32,
  target_at: u32,
  start_stride: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<uniform> start: vec4i;
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
  var rest = index;
  var source = params.source_at + bitcast<u32>(start.x) * params.start_stride;
  var target_index = params.target_at + index * params.target_low.x;
  source += index * params.source_low.x;
  for (var axis = 1u; axis < params.rank; axis++) {
    let low = axis < 4u;
    let at = axis & 3u;
    rest /= select(params.sizes_high[at], params.sizes_low[at], low);
    source += rest * select(params.source_high[at], params.source_low[at], low);
    target_index += rest * select(params.target_high[at], params.target_low[at], low);
  }
  out[target_index] = x[source];
}
