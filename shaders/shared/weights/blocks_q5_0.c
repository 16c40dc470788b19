// Q5_0: (nibble | bit << 4) - 16, times an f16 scale.
// scales: three words for two blocks: the fifth bits of one, both scales, the fifth bits of the other.

#include "shared/weights/blocks.h"

enum { HALVES = 1, PAIRED = 0, ADDS = 0, CENTRE = 16, SIGNED = 0 };

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  u32 at = row * (matrix->octets / 4) + block;
  Bytes low = nibbles(load_bytes16(matrix->weight + 16 * at));
  Bytes high = spread_bits(matrix->scales + 12 * (at / 2) + 8 * (at % 2), 16);
  return (Bytes){low.low | high.low, low.high | high.high};
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  u32 at = row * (matrix->octets / 4) + block;
  return (f32x2){load_half(matrix->scales + 12 * (at / 2) + 4 + 2 * (at % 2)), 0.0f};
}

#include "shared/weights/each_affine.h"
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_q5_0) = BLOCK_WEIGHTS;
