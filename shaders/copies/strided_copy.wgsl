// out[destination] = x[source] along a walk. Pure movement of 32-bit elements. `start` is a live position along
// one axis of x.
// needs: shared/walk

struct Params {
  steps: array<vec4u, MAX_AXES>,  // for source and destination
  sizes: array<vec4u, MAX_AXES / 4u>,
  rank: u32,
  count: u32,
  source_at: u32,
  destination_at: u32,
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
  let at = walk(index);
  let source = params.source_at + bitcast<u32>(start.x) * params.start_stride + at.x;
  out[params.destination_at + at.y] = x[source];
}
