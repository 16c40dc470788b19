// Q5_1: (nibble | bit << 4), times an f16 scale, plus a minimum.
// scales: (scale and minimum as f16, the fifth bits) a block.

#include "shared/weights/blocks.h"

enum { HALVES = 1, PAIRED = 0, ADDS = 1, CENTRE = 0, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  u32 at = row * (matrix->octets / 4) + block;
  Bytes low = nibbles(load_bytes16(matrix->weight + 16 * at));
  Bytes high = spread_bits(matrix->scales + 8 * at + 4, 16);
  return (Bytes){low.low | high.low, low.high | high.high};
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  const u8 *facts = matrix->scales + 8 * (row * (matrix->octets / 4) + block);
  return (f32x2){load_half(facts), load_half(facts + 2)};
}

#include "shared/weights/each_affine.h"
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q5_1) = BLOCK_WEIGHTS;
