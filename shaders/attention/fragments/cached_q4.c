// Blocks of 32 values in 4 bits each: the step between codes, the least value, then bytes of two codes, that of the
// block's second half in the high bits.

#include "attention/cached.h"
#include "attention/fragments/cached_q4.wgsl.h"
#include "maths.h"

static void pack_q4(const f32 *values, void *block) {
  const f32 largest = 65504.0f;
  f32x4 each_least = splat(largest), each_top = splat(-largest);
  for (u32 at = 0; at < BLOCK_VALUES; at += 4) {
    f32x4 quad = at_least4(at_most4(load_f32x4(values + at), largest), -largest);
    each_least = min4(each_least, quad);
    each_top = max4(each_top, quad);
  }
  f32 least = -max_of(-each_least);
  u16 *held = block;
  held[0] = float_to_half((max_of(each_top) - least) / 15.0f);
  held[1] = float_to_half(least);
  f32 step = max_f32(half_to_float(held[0]), 1e-30f), start = half_to_float(held[1]);
  u8 *codes = (u8 *)(held + 2);
  for (u32 at = 0; at < BLOCK_VALUES / 2; at += 4) {
    i32x4 both = {0};
    for (u32 half = 0; half < 2; half++) {
      f32x4 steps = round4((load_f32x4(values + at + half * BLOCK_VALUES / 2) - start) / step);
      both |= (i32x4)wasm_i32x4_trunc_sat_f32x4((v128_t)at_least4(at_most4(steps, 15.0f), 0.0f)) << (i32)(4 * half);
    }
    for (u32 lane = 0; lane < 4; lane++) codes[at + lane] = (u8)both[lane];
  }
}

static void unpack_q4(const void *block, f32 *values) {
  const u16 *held = block;
  f32 step = half_to_float(held[0]), least = half_to_float(held[1]);
  const u8 *codes = (const u8 *)(held + 2);
  UNROLLED for (u32 at = 0; at < BLOCK_VALUES / 2; at += 8) {
    v128_t eight = wasm_u16x8_load8x8(codes + at);
    v128_t halves[2] = {wasm_v128_and(eight, wasm_i16x8_splat(15)), wasm_u16x8_shr(eight, 4)};
    UNROLLED for (u32 half = 0; half < 2; half++) {
      f32 *to = values + at + half * BLOCK_VALUES / 2;
      f32x4 first = (f32x4)wasm_f32x4_convert_i32x4(wasm_u32x4_extend_low_u16x8(halves[half]));
      f32x4 second = (f32x4)wasm_f32x4_convert_i32x4(wasm_u32x4_extend_high_u16x8(halves[half]));
      store_f32x4(to, first * step + least);
      store_f32x4(to + 4, second * step + least);
    }
  }
}

FRAGMENT(CachedBlocks, attention_fragments_cached_q4) = {4 * CACHED_WORDS, pack_q4, unpack_q4};
