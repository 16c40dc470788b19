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

// Scales of neighbouring rows lie side by side.
INLINE void rows_affine(
    const Matrix *matrix, const u32 *rows, u32 blocks, const f32 *const *sums, u32 tokens, f32 *scales, f32x4 *added) {
  const f32 *first[4];
  u32 step[4], same = matrix->octets_per_group / 4;
  for (u32 row = 0; row < 4; row++) {
    u32x2 of_row = row_scales(matrix, rows[row]);
    first[row] = (const f32 *)matrix->scales + of_row.x;
    step[row] = of_row.y;
  }
  int side_by_side = step[3] == step[0];
  for (u32 row = 1; row < 4; row++) side_by_side &= first[row] == first[0] + row;
  if (side_by_side && same == 1) {
    for (u32 block = 0; block < blocks; block++, first[0] += step[0]) {
      f32x4 four = load_f32x4(first[0]);
      store_f32x4(scales + 4 * block, four);
      UNROLLED for (u32 token = 0; token < tokens; token++) {
        added[token] = fma4(four, splat(sums[token][block]), added[token]);
      }
    }
    UNROLLED for (u32 token = 0; token < tokens; token++) added[token] = -(f32)CENTRE * added[token];
    return;
  }
  for (u32 block = 0; block < blocks; block += same) {
    f32x4 four = side_by_side ? load_f32x4(first[0]) : (f32x4){*first[0], *first[1], *first[2], *first[3]};
    for (u32 at = block; at < min_u32(block + same, blocks); at++) {
      store_f32x4(scales + 4 * at, four);
      UNROLLED for (u32 token = 0; token < tokens; token++) {
        added[token] = fma4(four, splat(sums[token][at]), added[token]);
      }
    }
    for (u32 row = 0; row < 4; row++) first[row] += step[row];
  }
  UNROLLED for (u32 token = 0; token < tokens; token++) added[token] = -(f32)CENTRE * added[token];
}

#define OWN_ROWS_AFFINE
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q4gsw) = BLOCK_WEIGHTS;
