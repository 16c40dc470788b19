// The scales of Q4_K and Q5_K for 256 columns: see k_scales.wgsl.

#pragma once

#include "shared/weights/blocks.h"

// Returns (d * scale, -dmin * minimum) of one of the eight blocks.
INLINE f32x2 k_affine(const u8 *facts, u32 block) {
  u32 start = 8 * (block % 4), low = start + 4 * (block / 4), high = start + 2 * (block / 4);
  u32 top = load_word(facts + 12);
  u32 scale = (load_word(facts + 4) >> low & 15) | (top >> high & 3) << 4;
  u32 minimum = (load_word(facts + 8) >> low & 15) | (top >> (high + 4) & 3) << 4;
  return (f32x2){load_half(facts) * (f32)scale, -(load_half(facts + 2) * (f32)minimum)};
}

// The same of all blocks of four rows, and what is added to their products with each token (see block_rows.h).
INLINE void k_rows_affine(
    const Matrix *matrix, const u32 *rows, u32 blocks, const f32 *const *sums, u32 tokens, f32 *scales, f32x4 *added) {
  const u8 *facts[4];
  for (u32 row = 0; row < 4; row++) facts[row] = matrix->scales + 16 * (rows[row] * (blocks / 8));
  for (u32 eight = 0; eight < blocks; eight += 8) {
    v128_t a = wasm_v128_load(facts[0] + 2 * eight), b = wasm_v128_load(facts[1] + 2 * eight);
    v128_t c = wasm_v128_load(facts[2] + 2 * eight), d = wasm_v128_load(facts[3] + 2 * eight);
    v128_t ab_low = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), ab_high = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
    v128_t cd_low = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5), cd_high = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
    u32x4 ends = (u32x4)wasm_i64x2_shuffle(ab_low, cd_low, 0, 2);  // a row in each lane
    u32x4 low_scales = (u32x4)wasm_i64x2_shuffle(ab_low, cd_low, 1, 3);
    u32x4 low_minima = (u32x4)wasm_i64x2_shuffle(ab_high, cd_high, 0, 2);
    u32x4 top = (u32x4)wasm_i64x2_shuffle(ab_high, cd_high, 1, 3);
    f32x4 of_scales = floats_of_halves(ends & 0xffff), of_minima = floats_of_halves(ends >> 16);
    // Bytes of blocks 0 to 3 of each row, then of blocks 4 to 7.
    u32x4 own_scales[2] = {(low_scales & 0x0f0f0f0f) | (top & 0x03030303) << 4,
                           (low_scales >> 4 & 0x0f0f0f0f) | (top & 0x0c0c0c0c) << 2};
    u32x4 own_minima[2] = {(low_minima & 0x0f0f0f0f) | (top & 0x30303030),
                           (low_minima >> 4 & 0x0f0f0f0f) | (top >> 2 & 0x30303030)};
    f32x4 minima[TOKENS_AT_ONCE];
    UNROLLED for (u32 token = 0; token < tokens; token++) minima[token] = splat(0.0f);
    UNROLLED for (u32 block = 0; block < 8; block++) {
      i32x4 scale = (i32x4)(own_scales[block / 4] >> 8 * (block % 4) & 0xff);
      i32x4 minimum = (i32x4)(own_minima[block / 4] >> 8 * (block % 4) & 0xff);
      store_f32x4(scales + 4 * (eight + block), of_scales * __builtin_convertvector(scale, f32x4));
      UNROLLED for (u32 token = 0; token < tokens; token++) {
        f32x4 sum = splat(sums[token][eight + block]);
        minima[token] = fma4(__builtin_convertvector(minimum, f32x4), sum, minima[token]);
      }
    }
    UNROLLED for (u32 token = 0; token < tokens; token++) added[token] = added[token] - of_minima * minima[token];
  }
}
