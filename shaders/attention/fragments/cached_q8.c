// Blocks of 32 values in 8 bits each: the largest magnitude, then shares of it, in 127ths.

#include "attention/cached.h"
#include "attention/fragments/cached_q8.wgsl.h"
#include "maths.h"

static void pack_q8(const f32 *values, void *block) {
  f32x4 each = splat(0.0f);
  for (u32 at = 0; at < BLOCK_VALUES; at += 4) each = max4(each, abs4(load_f32x4(values + at)));
  f32 top = min_f32(max_of(each), 3.4e38f);
  *(f32 *)block = top;
  i8 *shares = (i8 *)block + sizeof(f32);
  for (u32 at = 0; at < BLOCK_VALUES; at += 4) {
    f32x4 share = load_f32x4(values + at) / max_f32(top, 1e-30f);
    i32x4 whole = (i32x4)wasm_i32x4_trunc_sat_f32x4((v128_t)round4(at_least4(at_most4(share, 1.0f), -1.0f) * 127.0f));
    for (u32 lane = 0; lane < 4; lane++) shares[at + lane] = (i8)whole[lane];
  }
}

static void unpack_q8(const void *block, f32 *values) {
  f32 share = *(const f32 *)block / 127.0f;
  const i8 *shares = (const i8 *)block + sizeof(f32);
  UNROLLED for (u32 at = 0; at < BLOCK_VALUES; at += 8) {
    v128_t eight = wasm_i16x8_load8x8(shares + at);
    store_f32x4(values + at, (f32x4)wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(eight)) * share);
    store_f32x4(values + at + 4, (f32x4)wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(eight)) * share);
  }
}

FRAGMENT(CachedBlocks, attention_fragments_cached_q8) = {4 * CACHED_WORDS, pack_q8, unpack_q8};
