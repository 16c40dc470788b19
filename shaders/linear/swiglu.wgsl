// out = activation(gate) * up, from sums [tokens, gate | up]; out: [tokens, rows]. One invocation computes
// one element.
// needs: gate = linear/fragments/gate_*

struct Params {
  count: u32,  // live elements of out
  rows: u32,  // of gate, and of up
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> sums: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
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
  let at = index / params.rows * 2u * params.rows + index % params.rows;
  out[index] = gated(sums[at], sums[at + params.rows]);
}
