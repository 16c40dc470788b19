// IQ4_NL: nibbles that index a table, times an f16 scale.

#include "shared/weights/blocks.h"

enum { HALVES = 1, PAIRED = 0, ADDS = 0, CENTRE = 0, SIGNED = 1 };

static const i8 NON_LINEAR[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

INLINE Bytes load_bytes(const Matrix *matrix, u32 row, u32 block) {
  Bytes places = nibbles(load_bytes16(matrix->weight + 16 * (row * (matrix->octets / 4) + block)));
  return looked_up(load_bytes16((const u8 *)NON_LINEAR), places);
}

INLINE f32x2 half_affine(const Matrix *matrix, u32 row, u32 block, u32 half) {
  return (f32x2){load_half(matrix->scales + 2 * (row * (matrix->octets / 4) + block)), 0.0f};
}

#include "shared/weights/half_scales.h"
#include "shared/weights/block_rows.h"

FRAGMENT(Weights, shared_weights_blocks_iq4_nl) = BLOCK_WEIGHTS;
