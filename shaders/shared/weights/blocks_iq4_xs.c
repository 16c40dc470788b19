// IQ4_XS: IQ4_NL's nibbles, with 6-bit scales for 32 columns and an f16 for 256.
// scales: (the f16 and the upper two bits of the scales, their lower four bits).

#include "shared/weights/blocks.h"

enum { HALVES = 1, PAIRED = 0, ADDS = 0, CENTRE = 0, SIGNED = 1 };

static const i8 NON_LINEAR[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  Bytes places = nibbles(load_bytes16(matrix->weight + 16 * (row * (matrix->octets / 4) + block)));
  return looked_up(load_bytes16((const u8 *)NON_LINEAR), places);
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  const u8 *facts = matrix->scales + 8 * (row * (matrix->octets / 32) + block / 8);
  u32 low = load_word(facts + 4) >> 4 * (block % 8) & 15;
  u32 high = load_word(facts) >> (16 + 2 * (block % 8)) & 3;
  return (f32x2){load_half(facts) * ((f32)(low | high << 4) - 32.0f), 0.0f};
}

#include "shared/weights/each_affine.h"
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_iq4_xs) = BLOCK_WEIGHTS;
