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

static void row_affine(const Matrix *matrix, u32 row, u32 blocks, f32 *scales, f32 *addends) {
  u32x2 of_row = row_scales(matrix, row);
  const f32 *of_group = (const f32 *)matrix->scales + of_row.x;
  u32 step = matrix->octets_per_group / 4;
  for (u32 group = 0; group < blocks; group += step, of_group += of_row.y) {
    for (u32 at = group; at < min_u32(group + step, blocks); at++) scales[at] = *of_group;
  }
}

#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q4gsw) = BLOCK_WEIGHTS;
