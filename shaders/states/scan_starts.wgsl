// The states that the chunks of a selective scan begin with, number by number: the first with what came before
// the call, each other one with what the chunk before it keeps of its own beginning and adds.
// chunks: as in selective_scan_wide.wgsl.
// needs: nothing

struct Params {
  count: u32,  // numbers of a state
  number: u32,  // of chunks
  heads: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> state: array<f32>;
@group(0) @binding(1) var<uniform> start_pos: vec4i;
@group(0) @binding(2) var<storage, read_write> chunks: array<f32>;
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
  let head = index / (params.count / params.heads);
  var held = select(state[index], 0.0, start_pos.x == 0);
  chunks[index] = held;
  for (var chunk = 1u; chunk < params.number; chunk++) {
    let kept = chunks[params.number * params.count + chunk * params.heads + head];
    held = kept * held + chunks[chunk * params.count + index];
    chunks[chunk * params.count + index] = held;
  }
}
