// Q4_1: nibbles, times an f16 scale, plus a minimum.

#include "shared/weights/blocks.h"

enum { HALVES = 1, PAIRED = 1, ADDS = 1, CENTRE = 0, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  return nibbles(load_bytes16(matrix->weight + 16 * (row * (matrix->octets / 4) + block)));
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  const u8 *both = matrix->scales + 4 * (row * (matrix->octets / 4) + block);
  return (f32x2){load_half(both), load_half(both + 2)};
}

static void row_affine(const Matrix *matrix, u32 row, u32 blocks, f32 *scales, f32 *addends) {
  const u16 *both = (const u16 *)matrix->scales + 2 * row * blocks;
  for (u32 at = 0; at < blocks; at++) {
    scales[at] = half_to_float(both[2 * at]);
    addends[at] = half_to_float(both[2 * at + 1]);
  }
}

#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q4_1) = BLOCK_WEIGHTS;
FRAGMENT(Weights, shared_weights_octets_q4_1) = BLOCK_WEIGHTS;
