// k_cache[:, start_pos + token] = k[:, token], and the same for v.
// k, v: [batches, tokens, token_size]; caches: [batches, capacity, token_size].

struct Params {
  count: u32,
  tokens: u32,
  token_size: u32,
  capacity: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> k: array<f32>;
@group(0) @binding(1) var<storage, read> v: array<f32>;
@group(0) @binding(2) var<storage, read_write> k_cache: array<f32>;
@group(0) @binding(3) var<storage, read_write> v_cache: array<f32>;
@group(0) @binding(4) var<uniform> start_pos: vec4i;
@group(0) @binding(5) var<uniform> params: Params;

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
  let at = (batch * params.capacity + row) * params.token_size + index % params.token_size;
  k_cache[at] = k[index];
  v_cache[at] = v[index];
}
