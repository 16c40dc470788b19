// out[i] = weight[indices[i]]. weight: [rows, columns]; indices: [count]; out: [count, columns].
// needs: nothing

struct Params {
  count: u32,  // live indices
  rows: u32,
  columns: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> weight: array<f32>;
@group(0) @binding(1) var<storage, read> indices: array<i32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let at = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (at >= params.count * params.columns) {
    return;
  }
  let row = u32(clamp(indices[at / params.columns], 0, i32(params.rows) - 1));
  out[at] = weight[row * params.columns + at % params.columns];
}
