// The update cache[:, start_pos + token] = value[:, token].
// value: [batches, tokens, token_size]; cache: [batches, capacity, token_size]; 32-bit elements.

#include "attention/update_cache.wgsl.h"
#include "kernel.h"

KERNEL(attention_update_cache, 64) {
  const update_cache_params *params = PARAMS(update_cache);
  const u32 *value = BUFFER(const u32, value);
  u32 *cache = BUFFER(u32, cache);
  u32 start = (u32)*BUFFER(const i32, start_pos);
  u32 last = min_u32(share.last * WORKGROUP, params->count);
  for (u32 index = share.first * WORKGROUP; index < last;) {
    u32 token = index / params->token_size;  // over all batches
    u32 from = index % params->token_size;
    u32 count = min_u32(params->token_size - from, last - index);
    u32 row = token % params->tokens + start;
    u32 place = (token / params->tokens * params->capacity + row) * params->token_size + from;
    if (row < params->capacity) __builtin_memcpy(cache + place, value + index, count * sizeof(u32));
    index += count;
  }
}
