// The update k_cache[:, start_pos + token] = k[:, token], and the same for v, two values at a time. The
// caches are rings: positions beyond their rows wrap around.
// k, v: [batches, tokens, token_size]; caches: [batches, capacity, token_size].
// needs: store = attention/fragments/store_*

struct Params {
  pairs: u32,  // of a token's values
  count: u32,  // pairs of all tokens
  tokens: u32,
  token_size: u32,
  capacity: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> k: array<f32>;
@group(0) @binding(1) var<storage, read> v: array<f32>;
@group(0) @binding(2) var<uniform> start_pos: vec4i;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  let token = index / params.pairs;  // over all batches
  let batch = token / params.tokens;
  let row = (token % params.tokens + u32(start_pos.x)) % params.capacity;
  if (index >= params.count) {
    return;
  }
  let first = index % params.pairs * 2u;
  let both = vec2u(first, min(first + 1u, params.token_size - 1u));  // the last may be alone
  let places = token * params.token_size + both;
  let destinations = (batch * params.capacity + row) * params.token_size + both;
  store_keys(destinations, vec2f(k[places.x], k[places.y]));
  store_values(destinations, vec2f(v[places.x], v[places.y]));
}
