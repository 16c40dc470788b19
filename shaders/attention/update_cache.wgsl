// The update cache[:, start_pos + token] = value[:, token].
// value: [batches, tokens, token_size]; cache: [batches, capacity, token_size]; 32-bit elements.
// needs: nothing

struct Params {
  count: u32,
  tokens: u32,
  token_size: u32,
  capacity: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> value: array<u32>;
@group(0) @binding(1) var<storage, read_write> cache: array<u32>;
@group(0) @binding(2) var<uniform> start_pos: vec4i;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  let batch_size = params.tokens * params.token_size;
  let batch = index / batch_size;
  let row = index % batch_size / params.token_size + u32(start_pos.x);
  if (index >= params.count || row >= params.capacity) {
    return;
  }
  cache[(batch * params.capacity + row) * params.token_size + index % params.token_size] =
    value[index];
}
