// out = activation(gate) * one part of each row of parts, element by element. gate, out: [rows, width];
// parts: [rows, stride], of which the columns from `first` on are taken.
// needs: gate = linear/fragments/gate_*

struct Params {
  count: u32,
  width: u32,
  stride: u32,
  first: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> gate: array<f32>;
@group(0) @binding(1) var<storage, read> parts: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
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
  let row = index / params.width;
  let column = index % params.width;
  out[index] = gated(gate[index], parts[row * params.stride + params.first + column]);
}
