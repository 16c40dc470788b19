// Q2_K: crumbs, with 4-bit scales and minima for 16 columns, and an f16 each for 256.
// weight: four vectors of crumbs; scales: sixteen bytes, then d and dmin as f16.

#include "shared/weights/blocks.h"

enum { HALVES = 2, PAIRED = 0, ADDS = 1, CENTRE = 0, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  return spread_crumbs(matrix->weight + 64 * (row * (matrix->octets / 32) + block / 8) + 8 * (block % 8), 1);
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  const u8 *facts = matrix->scales + 20 * (row * (matrix->octets / 32) + block / 8);
  u32 both = facts[2 * (block % 8) + half];
  return (f32x2){load_half(facts + 16) * (f32)(both & 15), -(load_half(facts + 18) * (f32)(both >> 4))};
}

#include "shared/weights/each_affine.h"
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q2_k) = BLOCK_WEIGHTS;
