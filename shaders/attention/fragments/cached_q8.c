// Blocks of 32 values in 10 bits each: how far they range and the least value, then the high bits of their codes,
// then the low ones, of every eighth value in a byte.

#include "attention/cached.h"
#include "attention/fragments/cached_q8.wgsl.h"
#include "maths.h"

static void pack_q8(const f32 *values, void *block) {
  const f32 largest = 65504.0f;
  f32x4 each_least = splat(largest), each_top = splat(-largest);
  for (u32 at = 0; at < BLOCK_VALUES; at += 4) {
    f32x4 quad = at_least4(at_most4(load_f32x4(values + at), largest), -largest);
    each_least = min4(each_least, quad);
    each_top = max4(each_top, quad);
  }
  f32 least = -max_of(-each_least);
  u16 *held = block;
  held[0] = float_to_half(min_f32(max_of(each_top) - least, largest));
  held[1] = float_to_half(least);
  f32 start = half_to_float(held[1]), steps_of_value = 1023.0f / max_f32(half_to_float(held[0]), 1e-30f);
  u8 *high = (u8 *)(held + 2), *low = high + BLOCK_VALUES;
  __builtin_memset(low, 0, 8);
  for (u32 at = 0; at < BLOCK_VALUES; at += 4) {
    f32x4 steps = round4((load_f32x4(values + at) - start) * steps_of_value);
    i32x4 codes = (i32x4)wasm_i32x4_trunc_sat_f32x4((v128_t)at_least4(at_most4(steps, 1023.0f), 0.0f));
    for (u32 lane = 0; lane < 4; lane++) {
      high[at + lane] = (u8)(codes[lane] >> 2);
      low[at % 8 + lane] |= (u8)((codes[lane] & 3) << (at / 8 * 2));
    }
  }
}

static void unpack_q8(const void *block, f32 *values) {
  const u16 *held = block;
  f32 step = half_to_float(held[0]) / 1023.0f, least = half_to_float(held[1]);
  const u8 *high = (const u8 *)(held + 2);
  v128_t low = wasm_u16x8_load8x8(high + BLOCK_VALUES);
  UNROLLED for (u32 at = 0; at < BLOCK_VALUES; at += 8) {
    v128_t two = wasm_v128_and(wasm_u16x8_shr(low, at / 4), wasm_i16x8_splat(3));
    v128_t codes = wasm_v128_or(wasm_i16x8_shl(wasm_u16x8_load8x8(high + at), 2), two);
    store_f32x4(values + at, (f32x4)wasm_f32x4_convert_i32x4(wasm_u32x4_extend_low_u16x8(codes)) * step + least);
    store_f32x4(values + at + 4, (f32x4)wasm_f32x4_convert_i32x4(wasm_u32x4_extend_high_u16x8(codes)) * step + least);
  }
}

FRAGMENT(CachedBlocks, attention_fragments_cached_q8) = {4 * CACHED_WORDS, pack_q8, unpack_q8};
