// The update k_cache[:, start_pos + token] = k[:, token], and the same for v, where caches hold blocks of 32
// values. The caches are rings. k, v: [batches, tokens, blocks, 32]; caches: [batches, capacity, blocks].

#include "attention/cached.h"
#include "attention/update_kv_blocks.wgsl.h"

KERNEL(attention_update_kv_blocks, 1) {
  const update_kv_blocks_params *params = PARAMS(update_kv_blocks);
  const CachedBlocks *blocks = PLUG(CachedBlocks, cached);
  u32 start = (u32)*BUFFER(const i32, start_pos);
  u32 last = min_u32(share.last * WORKGROUP, 2 * params->count);  // those of k, then those of v
  for (u32 index = share.first * WORKGROUP; index < last; index++) {
    int is_key = index < params->count;
    u32 block = is_key ? index : index - params->count;
    u32 token = block / params->blocks;  // over all batches
    u32 row = token / params->tokens * params->capacity + (token % params->tokens + start) % params->capacity;
    const f32 *from = is_key ? BUFFER(const f32, k) : BUFFER(const f32, v);
    u8 *cache = is_key ? BUFFER(u8, k_cache) : BUFFER(u8, v_cache);
    blocks->pack(from + BLOCK_VALUES * block, cache + (row * params->blocks + block % params->blocks) * blocks->bytes);
  }
}
