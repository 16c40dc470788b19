// Q4_0: (nibble - 8) times an f16 scale.

#include "shared/weights/blocks.h"

enum { HALVES = 1, PAIRED = 1, ADDS = 0, CENTRE = 8, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  return nibbles(load_bytes16(matrix->weight + 16 * (row * (matrix->octets / 4) + block)));
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  return (f32x2){load_half(matrix->scales + 2 * (row * (matrix->octets / 4) + block)), 0.0f};
}

#include "shared/weights/half_scales.h"
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q4_0) = BLOCK_WEIGHTS;
FRAGMENT(Weights, shared_weights_octets_q4_0) = BLOCK_WEIGHTS;
