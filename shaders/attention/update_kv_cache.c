// The update k_cache[:, start_pos + token] = k[:, token], and the same for v. The caches are rings.
// k, v: [batches, tokens, token_size]; caches: [batches, capacity, token_size].

#include "attention/cached.h"
#include "attention/update_kv_cache.wgsl.h"

KERNEL(attention_update_kv_cache, 32) {
  const update_kv_cache_params *params = PARAMS(update_kv_cache);
  const f32 *k = BUFFER(const f32, k), *v = BUFFER(const f32, v);
  const Stored *stored = PLUG(Stored, store);
  u32 start = (u32)*BUFFER(const i32, start_pos);
  u32 last = min_u32(share.last * WORKGROUP, params->count);  // of pairs; the last of a token may be half a pair
  for (u32 index = share.first * WORKGROUP; index < last;) {
    u32 token = index / params->pairs;  // over all batches
    u32 from = index % params->pairs;
    u32 count = min_u32(params->pairs - from, last - index);
    u32 row = (token % params->tokens + start) % params->capacity;
    u32 place = (token / params->tokens * params->capacity + row) * params->token_size + 2 * from;
    u32 values = min_u32(2 * (from + count), params->token_size) - 2 * from;
    stored->store(BUFFER(void, k_cache), place, values, k + token * params->token_size + 2 * from);
    stored->store(BUFFER(void, v_cache), place, values, v + token * params->token_size + 2 * from);
    index += count;
  }
}
