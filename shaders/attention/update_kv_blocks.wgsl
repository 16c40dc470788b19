// The update k_cache[:, start_pos + token] = k[:, token], and the same for v, where caches hold blocks of 32
// values: an invocation for each block of both. The caches are rings: positions beyond their rows wrap around.
// k, v: [batches, tokens, blocks, 8 quads]; caches: [batches, capacity, blocks], each some words.
// needs: cached = attention/fragments/cached_*

struct Params {
  blocks: u32,  // of a token's keys
  count: u32,  // blocks of all tokens' keys
  tokens: u32,
  capacity: u32,
}

const WORKGROUP = 64u;

@group(0) @binding(0) var<storage, read> k: array<vec4f>;
@group(0) @binding(1) var<storage, read> v: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(3) var<storage, read_write> v_cache: array<u32>;
@group(0) @binding(4) var<uniform> start_pos: vec4i;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let index = (group.y * groups.x + group.x) * WORKGROUP + lane;
  if (index >= 2u * params.count) {
    return;
  }
  let is_key = index < params.count;
  let block = index % params.count;
  var values = array<vec4f, 8>();
  for (var quad = 0u; quad < 8u; quad++) {
    let at = 8u * block + quad;
    if (is_key) {
      values[quad] = k[at];
    } else {
      values[quad] = v[at];
    }
  }
  var words = cached_block(values);
  let token = block / params.blocks;  // over all batches
  let batch = token / params.tokens;
  let row = (token % params.tokens + u32(start_pos.x)) % params.capacity;
  let place = ((batch * params.capacity + row) * params.blocks + block % params.blocks) * CACHED_WORDS;
  for (var word = 0u; word < CACHED_WORDS; word++) {
    if (is_key) {
      k_cache[place + word] = words[word];
    } else {
      v_cache[place + word] = words[word];
    }
  }
}
