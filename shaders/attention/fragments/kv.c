// Caches of keys and values in floats, in halves, and in blocks, whose types have files of their own.

#include "attention/cached.h"

static void store_floats(void *cache, u32 place, u32 count, const f32 *from) {
  __builtin_memcpy((f32 *)cache + place, from, count * sizeof(f32));
}

FRAGMENT(Cached, attention_fragments_kv_f32) = {0};
FRAGMENT(Stored, attention_fragments_store_f32) = {store_floats};

static void store_halves(void *cache, u32 place, u32 count, const f32 *from) {
  u16 *to = (u16 *)cache + place;
  for (u32 at = 0; at < count; at++) to[at] = float_to_half(from[at]);
}

static void load_halves(const Call *call, const void *cache, u32 place, u32 count, f32 *to) {
  const u16 *from = (const u16 *)cache + place;
  for (u32 at = 0; at < count; at += 4) store_f32x4(to + at, halves_to_floats(from + at));
}

FRAGMENT(Cached, attention_fragments_kv_f16) = {load_halves};
FRAGMENT(Stored, attention_fragments_store_f16) = {store_halves};

static void load_blocks(const Call *call, const void *cache, u32 place, u32 count, f32 *to) {
  const CachedBlocks *blocks = PLUG(CachedBlocks, cached);
  for (u32 end = place + count, taken; place < end; place += taken, to += taken) {
    const u8 *block = (const u8 *)cache + place / BLOCK_VALUES * blocks->bytes;
    u32 first = place % BLOCK_VALUES;
    taken = min_u32(BLOCK_VALUES - first, end - place);
    if (taken == BLOCK_VALUES) {
      blocks->unpack(block, to);
    } else {  // heads may begin within a block
      f32 all[BLOCK_VALUES];
      blocks->unpack(block, all);
      copy_words(to, all + first, taken);
    }
  }
}

FRAGMENT(Cached, attention_fragments_kv_blocks) = {load_blocks};
