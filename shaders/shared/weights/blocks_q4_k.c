// Q4_K: nibbles, with 6-bit scales and minima for 32 columns, and an f16 each for 256.

#include "shared/weights/k_scales.h"

enum { HALVES = 1, PAIRED = 0, ADDS = 1, CENTRE = 0, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  return nibbles(load_bytes16(matrix->weight + 16 * (row * (matrix->octets / 4) + block)));
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  return k_affine(matrix->scales + 16 * (row * (matrix->octets / 32) + block / 8), block % 8);
}

#define OWN_ROWS_AFFINE
#define rows_affine k_rows_affine
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q4_k) = BLOCK_WEIGHTS;
