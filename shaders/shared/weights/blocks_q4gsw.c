// q4gsw in whole blocks, where rows and groups are multiples of 32 columns.

#include "shared/weights/blocks.h"

enum { HALVES = 1, PAIRED = 1, ADDS = 0, CENTRE = 8, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  return nibbles(load_bytes16(matrix->weight + 16 * (row * (matrix->octets / 4) + block)));
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  u32x2 of_row = row_scales(matrix, row);
  u32 group = 4 * block / matrix->octets_per_group;
  return (f32x2){((const f32 *)matrix->scales)[of_row.x + group * of_row.y], 0.0f};
}

#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q4gsw) = BLOCK_WEIGHTS;
