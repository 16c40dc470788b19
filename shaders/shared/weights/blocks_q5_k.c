// Q5_K: Q4_K with a fifth bit. weight: eight vectors of nibbles, two of fifth bits.

#include "shared/weights/k_scales.h"

enum { HALVES = 1, PAIRED = 0, ADDS = 1, CENTRE = 0, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  const u8 *eight = matrix->weight + 160 * (row * (matrix->octets / 32) + block / 8);
  Bytes low = nibbles(load_bytes16(eight + 16 * (block % 8)));
  Bytes high = spread_bits(eight + 128 + 4 * (block % 8), 16);
  return (Bytes){low.low | high.low, low.high | high.high};
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  return k_affine(matrix->scales + 16 * (row * (matrix->octets / 32) + block / 8), block % 8);
}

#define OWN_ROWS_AFFINE
#define rows_affine k_rows_affine
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q5_k) = BLOCK_WEIGHTS;
