// Q8_0: signed bytes, times an f16 scale.

#include "shared/weights/blocks.h"

enum { HALVES = 1, PAIRED = 0, ADDS = 0, CENTRE = 0, SIGNED = 1 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  const u8 *first = matrix->weight + 32 * (row * (matrix->octets / 4) + block);
  v128_t a = wasm_v128_load(first), b = wasm_v128_load(first + 16);
  return (Bytes){(u8x16)wasm_i32x4_shuffle(a, b, 0, 2, 4, 6), (u8x16)wasm_i32x4_shuffle(a, b, 1, 3, 5, 7)};
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  return (f32x2){load_half(matrix->scales + 2 * (row * (matrix->octets / 4) + block)), 0.0f};
}

#include "shared/weights/half_scales.h"
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q8_0) = BLOCK_WEIGHTS;
FRAGMENT(Weights, shared_weights_octets_q8_0) = BLOCK_WEIGHTS;
