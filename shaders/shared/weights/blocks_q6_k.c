// Q6_K: (nibble | crumb << 4) - 32, with 8-bit scales for 16 columns and an f16 for 256.
// weight: eight vectors of nibbles, four of crumbs; scales: sixteen bytes and an f16.

#include "shared/weights/blocks.h"

enum { HALVES = 2, PAIRED = 0, ADDS = 0, CENTRE = 32, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  const u8 *eight = matrix->weight + 192 * (row * (matrix->octets / 32) + block / 8);
  Bytes low = nibbles(load_bytes16(eight + 16 * (block % 8)));
  Bytes high = spread_crumbs(eight + 128 + 8 * (block % 8), 16);
  return (Bytes){low.low | high.low, low.high | high.high};
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  const u8 *facts = matrix->scales + 18 * (row * (matrix->octets / 32) + block / 8);
  i8 scale = (i8)facts[2 * (block % 8) + half];
  return (f32x2){load_half(facts + 16) * (f32)scale, 0.0f};
}

static void row_affine(const Matrix *matrix, u32 row, u32 blocks, f32 *scales, f32 *addends) {
  const u8 *facts = matrix->scales + 18 * (row * (blocks / 8));
  for (u32 at = 0; at < 2 * blocks; at += 16, facts += 18) {
    f32 d = load_half(facts + 16);
    for (u32 eight = 0; eight < 16; eight += 8) {
      v128_t wide = wasm_i16x8_load8x8(facts + eight);
      store_f32x4(scales + at + eight, d * (f32x4)wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(wide)));
      store_f32x4(scales + at + eight + 4, d * (f32x4)wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(wide)));
    }
  }
}

#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q6_k) = BLOCK_WEIGHTS;
